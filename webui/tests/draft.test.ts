import { describe, expect, it } from "vitest"
import { ANY_WORKER, bodyOf, draftFrom, firstDraft, plainBody } from "~/pages/training/draft"
import { problemsOf, unplaced } from "~/pages/training/problems"
import { fieldsOf, readForm, startingFrom, type JsonSchema } from "~/parts/schema_fields"

const schema: JsonSchema = {
  properties: {
    epochs: { type: "number", exclusiveMinimum: 0, maximum: 1000, default: 3 },
    max_steps: { anyOf: [{ type: "integer", minimum: 1 }, { type: "null" }], default: null },
    dora: { type: "boolean", default: false },
    lora_r: { type: "integer", minimum: 1, default: 16 },
  },
}
const plain = fieldsOf(schema)
const quick = { max_steps: 60, lora_r: 8 }
const fieldsFrom = (_: string, preset: string) => (preset === "quick" ? startingFrom(plain, quick) : plain)
const read = (body: Record<string, unknown>) => {
  const draft = draftFrom(body, fieldsFrom, "sft")
  return { draft, again: plainBody(bodyOf(draft, readForm(fieldsFrom("sft", draft.choices.preset), draft.drafts))) }
}

describe("a training as text", () => {
  it("comes back as it was written", () => {
    const body = {
      name: "Mine", dataset_id: 1, model_id: 2, trainer: "sft", preset: "quick", config: { epochs: 2, max_steps: null },
      worker_selection: { ...ANY_WORKER, gpu_type: "L4" }, export: ["gguf"],
    }
    expect(read(body).again).toEqual(body)
  })

  it("shows in the controls what they can hold and keeps the rest", () => {
    const { draft, again } = read({ config: { epochs: 2, lr: 0.1, dora: "perhaps", lora_r: 16 } })
    expect(draft.drafts).toEqual({ epochs: "2" })
    expect(draft.extras).toEqual({ lr: 0.1, dora: "perhaps" })
    expect(again).toEqual({ trainer: "sft", config: { epochs: 2, lr: 0.1, dora: "perhaps" } })
  })

  it("says only what differs from the preset", () => {
    expect(read({ preset: "quick", config: { lora_r: 8, epochs: 3 } }).again.config).toEqual({})
    expect(read({ preset: "quick", config: { lora_r: 16 } }).again.config).toEqual({ lora_r: 16 })
  })

  it("takes words for ids as they are, so that the hub can say what is wrong with them", () => {
    expect(read({ dataset_id: "mine", config: [1] }).again).toMatchObject({ dataset_id: "mine" })
  })
})

describe("a job that is duplicated", () => {
  it("begins with its settings under our names", () => {
    const job = { dataset_id: 1, model_id: 0, preset: "quick", export: [], worker_selection: ANY_WORKER, resolved_config: { epochs: 3, max_steps: null, lora_r: 8, dora: true } }
    const draft = firstDraft(new URLSearchParams(), job as never, "sft", startingFrom(plain, quick))
    expect(draft.drafts).toEqual({ max_steps: "none", dora: "true" })
    expect(draft.choices).toMatchObject({ datasetId: "1", modelId: "", preset: "quick" })
  })
})

describe("what the hub says", () => {
  const errors = [
    { loc: ["config", "epochs"], msg: "must be a number above 0." },
    { loc: ["config"], msg: "lora_r is too large." },
    { loc: ["colour"], msg: "not permitted" },
  ]
  const of = { config: { epochs: -1, lora_r: 99 } }
  const at = (body: object) => problemsOf(body, { said: { ok: false, errors, checks: [], estimate: null, resolved_config: null }, of, error: null }, null, undefined)

  it("stands at its field as long as the field stays the same", () => {
    expect(at(of)("config", "epochs")).toBe("must be a number above 0.")
    expect(at({ config: { epochs: 2, lora_r: 99 } })("config", "epochs")).toBeUndefined()
    expect(at({ config: { epochs: 2, lora_r: 99 } })("config", "lora_r")).toBe("lora_r is too large.")
  })

  it("is listed where no control has its place", () => {
    expect(unplaced(errors, (loc) => loc.startsWith("config."))).toEqual([errors[2]])
  })
})
