import type { DatasetOut, ModelOut, TrainingDraftIn, TrainingJobOut, WorkerSelection } from "~/api/types.gen"
import { draftOf, draftsOf, readDraft, type Drafts, type FormField, type FormReading } from "~/parts/schema_fields"

export interface Choices {
  name: string
  datasetId: string
  modelId: string
  validationId: string
  trainer: string
  /** "" starts from the trainer's defaults. */
  preset: string
}

export const ANY_WORKER: WorkerSelection = { mode: "auto", worker_ids: [], parsyn_worker_ids: [], gpu_type: null }

/** A training that is being thought out: what is in the controls, and what only YAML can say. */
export interface Draft {
  choices: Choices
  drafts: Drafts
  selection: WorkerSelection
  /** Settings that have no field here: another tool's name for one, or one that does not exist. */
  extras: Record<string, unknown>
  /** Whatever else a job may say, e.g. `export`. */
  rest: Record<string, unknown>
}

export function firstDraft(params: URLSearchParams, original: TrainingJobOut | undefined, trainer: string, fields: FormField[]): Draft {
  return {
    choices: {
      name: "",
      datasetId: params.get("dataset") ?? String(original?.dataset_id || ""),
      modelId: params.get("model") ?? String(original?.model_id || ""),
      validationId: String(original?.validation_dataset_id ?? ""),
      trainer: original?.trainer ?? trainer,
      preset: original?.preset ?? "",
    },
    // Resolved: the same settings under our own names, whatever they were called when it was asked for.
    drafts: original ? draftsOf(fields, original.resolved_config) : {},
    selection: original?.worker_selection ?? ANY_WORKER,
    extras: {},
    rest: original && original.export.length > 0 ? { export: original.export } : {},
  }
}

export function suggestName(dataset: DatasetOut | undefined, model: ModelOut | undefined): string {
  return dataset && model ? `${model.name} · ${dataset.name}`.slice(0, 200) : ""
}

/** The request, without what is still open. */
export function bodyOf({ choices, selection, extras, rest }: Draft, reading: FormReading, suggested = ""): TrainingDraftIn {
  // What is no number goes to the hub as it is, which says so.
  const id = (text: string) => (text === "" ? null : Number.isNaN(Number(text)) ? (text as unknown as number) : Number(text))
  const name = choices.name.trim() || suggested
  return {
    ...rest,
    ...(name && { name }),
    dataset_id: id(choices.datasetId),
    model_id: id(choices.modelId),
    validation_dataset_id: id(choices.validationId),
    trainer: choices.trainer,
    preset: choices.preset || null,
    config: { ...reading.config, ...extras },
    worker_selection: selection,
  }
}

/** What one reads and writes as YAML: the request, without what says nothing. */
export function plainBody(body: TrainingDraftIn): Record<string, unknown> {
  const { worker_selection: selection, ...others } = body
  const said = Object.entries(others).filter(([, value]) => value !== null && value !== undefined)
  const isAny = JSON.stringify({ ...ANY_WORKER, ...selection }) === JSON.stringify(ANY_WORKER)
  return { ...Object.fromEntries(said), ...(!isAny && { worker_selection: selection }) }
}

type Shape = Record<string, unknown>
const isShape = (value: unknown): value is Shape => typeof value === "object" && value !== null && !Array.isArray(value)
const textOf = (value: unknown) => (typeof value === "string" || typeof value === "number" ? String(value) : "")

/** The other way round; `fieldsFrom` gives the fields as they stand with a trainer and preset. */
export function draftFrom(body: Shape, fieldsFrom: (trainer: string, preset: string) => FormField[], trainer: string): Draft {
  const { name, dataset_id, model_id, validation_dataset_id, trainer: named, preset, config, worker_selection, ...rest } = body
  const choices: Choices = {
    name: textOf(name),
    datasetId: textOf(dataset_id),
    modelId: textOf(model_id),
    validationId: textOf(validation_dataset_id),
    trainer: textOf(named) || trainer,
    preset: textOf(preset),
  }
  const given = isShape(config) ? config : {}
  const fields = fieldsFrom(choices.trainer, choices.preset)
  const shown = new Set(fields.filter((field) => field.name in given && isFaithful(field, given[field.name])).map(({ name }) => name))
  const isShown = ([key]: [string, unknown]) => shown.has(key)
  const entries = Object.entries(given)
  return {
    choices,
    drafts: draftsOf(fields, Object.fromEntries(entries.filter(isShown))),
    selection: isShape(worker_selection) ? { ...ANY_WORKER, ...worker_selection } : ANY_WORKER,
    extras: Object.fromEntries(entries.filter((entry) => !isShown(entry))),
    rest: { ...rest, ...(config !== undefined && config !== null && !isShape(config) && { config }) },
  }
}

/** Whether a control can hold the value and give the same back. */
function isFaithful(field: FormField, value: unknown): boolean {
  if (value === null) return field.nullable
  const reading = readDraft(field, draftOf(field, value))
  return reading !== "default" && "value" in reading && JSON.stringify(reading.value) === JSON.stringify(value)
}
