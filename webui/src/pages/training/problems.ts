import type { ApiProblem, FieldError } from "~/api/http"
import type { TrainingDraftIn } from "~/api/types.gen"
import type { DraftCheck } from "./draft_check"

export type ProblemAt = (...loc: (string | number)[]) => string | undefined

/** The hub's message for a place of the request, as long as what it was said of still stands there. */
export function problemsOf(body: TrainingDraftIn, check: DraftCheck, refused: ApiProblem | null, sent: TrainingDraftIn | undefined): ProblemAt {
  return (...loc) => messageAt(check.said?.errors ?? [], check.of, body, loc) ?? messageAt(refused?.errors ?? [], sent, body, loc)
}

function messageAt(errors: FieldError[], of: TrainingDraftIn | undefined, body: TrainingDraftIn, loc: (string | number)[]): string | undefined {
  if (of === undefined || JSON.stringify(valueAt(of, loc)) !== JSON.stringify(valueAt(body, loc))) return undefined
  const here = errors.find((error) => error.loc.join(".") === loc.join("."))
  if (here || loc[0] !== "config" || loc.length < 2) return here?.msg
  // What a trainer says of the whole configuration begins with the name of the setting that it means.
  return errors.find((error) => error.loc.join(".") === "config" && error.msg.startsWith(`${String(loc[1])} `))?.msg
}

function valueAt(value: unknown, loc: (string | number)[]): unknown {
  return loc.reduce<unknown>((inner, key) => (typeof inner === "object" && inner !== null ? (inner as Record<string, unknown>)[key] : undefined), value)
}

/** Messages that no control shows. */
export function unplaced(errors: FieldError[], hasControl: (loc: string) => boolean): FieldError[] {
  return errors.filter(({ loc, msg }) => {
    const place = loc.join(".")
    return !hasControl(place) && !(place === "config" && hasControl(`config.${msg.split(" ")[0] ?? ""}`))
  })
}
