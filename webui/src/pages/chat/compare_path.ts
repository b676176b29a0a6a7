import type { ModelOut } from "~/api/types.gen"

/** The address that sets a fine-tuned model beside its base; of any other model, the newest fine-tune of it. */
export function comparePath(models: ModelOut[], chosen: string): string {
  const model = models.find(({ id }) => String(id) === chosen)
  const tuned = model?.base_model_id ? model : models.find(({ base_model_id, state }) => state === "ready" && String(base_model_id) === chosen)
  const base = tuned?.base_model_id ?? model?.id
  const query = new URLSearchParams()
  if (base) query.set("a", String(base))
  if (tuned) query.set("b", String(tuned.id))
  return `/chat/compare?${query.toString()}`
}
