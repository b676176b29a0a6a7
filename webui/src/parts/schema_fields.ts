import type { Key, Params } from "~/i18n"

/** The parts of JSON schema that pydantic writes, and our own marks (group, order, unit, advanced). */
export interface JsonSchema {
  type?: string
  title?: string
  description?: string
  default?: unknown
  enum?: unknown[]
  const?: unknown
  anyOf?: JsonSchema[]
  oneOf?: JsonSchema[]
  allOf?: JsonSchema[]
  $ref?: string
  $defs?: Record<string, JsonSchema>
  items?: JsonSchema
  properties?: Record<string, JsonSchema>
  required?: string[]
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  exclusiveMaximum?: number
  maxLength?: number
  group?: string
  order?: number
  unit?: string
  advanced?: boolean
}

export type FieldKind = "switch" | "number" | "text" | "choice" | "lines" | "json"

export interface FormField {
  name: string
  title: string
  help: string
  group: string
  unit: string
  advanced: boolean
  required: boolean
  kind: FieldKind
  nullable: boolean
  /** Fixed words that a number may also be, e.g. "auto". */
  words: string[]
  choices: unknown[]
  /** The ranges that a number may lie in; one is enough. */
  ranges: JsonSchema[]
  fallback: unknown
}

/** What is in the controls: always text, as typed; "" means the default. */
export type Drafts = Record<string, string>
export interface Complaint {
  key: Key
  params?: Params
}
type Reading = { value: unknown } | { complaint: Complaint } | "default"

export function fieldsOf(schema: JsonSchema): FormField[] {
  const defs = schema.$defs ?? {}
  return Object.entries(schema.properties ?? {})
    .map(([name, property], index) => ({ field: fieldOf(name, property, defs, schema.required ?? []), order: property.order ?? 1000 + index }))
    .sort((a, b) => a.order - b.order)
    .map(({ field }) => field)
}

/** Groups in the order in which their first field comes. */
export function groupsOf(fields: FormField[]): [group: string, fields: FormField[]][] {
  const groups = new Map<string, FormField[]>()
  for (const field of fields) groups.set(field.group, [...(groups.get(field.group) ?? []), field])
  return [...groups]
}

function fieldOf(name: string, property: JsonSchema, defs: Record<string, JsonSchema>, required: string[]): FormField {
  const options = alternatives(property, defs)
  const solid = options.filter((option) => option.type !== "null")
  const words = solid.flatMap(constantsOf).filter((word): word is string => typeof word === "string")
  const open = solid.filter((option) => constantsOf(option).length === 0)
  return {
    name,
    title: property.title ?? name,
    help: property.description ?? "",
    group: property.group ?? "",
    unit: property.unit ?? "",
    advanced: property.advanced ?? false,
    required: required.includes(name),
    kind: kindOf(open, solid),
    nullable: solid.length < options.length,
    words,
    choices: solid.flatMap((option) => (option.type === "boolean" && solid.length > 1 ? [true, false] : constantsOf(option))),
    ranges: open.filter(isNumber),
    fallback: property.default,
  }
}

function alternatives(schema: JsonSchema, defs: Record<string, JsonSchema>): JsonSchema[] {
  if (schema.$ref) return alternatives(defs[schema.$ref.replace("#/$defs/", "")] ?? {}, defs)
  const nested = schema.anyOf ?? schema.oneOf ?? (schema.allOf?.length === 1 ? schema.allOf : undefined)
  return nested ? nested.flatMap((option) => alternatives(option, defs)) : [schema]
}

function isNumber({ type }: JsonSchema): boolean {
  return type === "integer" || type === "number"
}

function constantsOf(schema: JsonSchema): unknown[] {
  if (schema.const !== undefined) return [schema.const]
  return schema.enum ?? []
}

function kindOf(open: JsonSchema[], solid: JsonSchema[]): FieldKind {
  const types = new Set(open.map((option) => option.type))
  const isOnly = (...allowed: string[]) => [...types].every((type) => type !== undefined && allowed.includes(type))
  if (open.length === 0 && solid.length > 0) return "choice"
  if (types.size === 1 && types.has("boolean")) return solid.length > 1 ? "choice" : "switch"
  if (isOnly("integer", "number")) return "number"
  if (isOnly("string")) return "text"
  const list = open.find((option) => option.type === "array")
  return list?.items?.type === "string" && isOnly("array", "string", "integer", "number") ? "lines" : "json"
}

/** What is typed to have nothing where the preset has something. */
export const NOTHING = "none"

/** True where the start is a value, and having none is allowed too. */
export function canBeNothing(field: FormField): boolean {
  return field.nullable && field.fallback !== null && field.fallback !== undefined
}

/** The fields as they stand when one starts from `base` instead of the defaults. */
export function startingFrom(fields: FormField[], base: Record<string, unknown>): FormField[] {
  return fields.map((field) => (field.name in base ? { ...field, fallback: base[field.name] } : field))
}

/** A value as it stands in its control. */
export function draftOf(field: FormField, value: unknown): string {
  if (value === null || value === undefined) return ""
  if (field.kind === "lines") return Array.isArray(value) ? value.join("\n") : String(value)
  if (field.kind === "json") return JSON.stringify(value, null, 1)
  return String(value)
}

export function readDraft(field: FormField, draft: string): Reading {
  const text = draft.trim()
  if (text === "") return field.required ? { complaint: { key: "form.required" } } : "default"
  if (text === NOTHING && canBeNothing(field)) return { value: null }
  switch (field.kind) {
    case "switch":
      return { value: text === "true" }
    case "choice":
      return readChoice(field, text)
    case "number":
      return field.words.includes(text) ? { value: text } : readNumber(field, text)
    case "lines":
      return readLines(field, text)
    case "json":
      return readJson(text)
    case "text":
      return { value: text }
  }
}

function readChoice(field: FormField, text: string): Reading {
  const choice = field.choices.find((option) => String(option) === text)
  return choice === undefined ? { complaint: { key: "form.choice" } } : { value: choice }
}

function readNumber(field: FormField, text: string): Reading {
  const value = Number(text.replace(",", "."))
  if (!Number.isFinite(value)) {
    const words = [...field.words, ...(canBeNothing(field) ? [NOTHING] : [])].join(", ")
    return { complaint: words ? { key: "form.number_or", params: { words } } : { key: "form.number" } }
  }
  const complaints = field.ranges.map((range) => outside(range, value))
  return complaints.includes(null) || complaints.length === 0 ? { value } : { complaint: complaints[0]! }
}

function outside(range: JsonSchema, value: number): Complaint | null {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = range
  if (range.type === "integer" && !Number.isInteger(value)) return { key: "form.integer" }
  if (minimum !== undefined && value < minimum) return { key: "form.minimum", params: { bound: minimum } }
  if (maximum !== undefined && value > maximum) return { key: "form.maximum", params: { bound: maximum } }
  if (exclusiveMinimum !== undefined && value <= exclusiveMinimum) return { key: "form.above", params: { bound: exclusiveMinimum } }
  if (exclusiveMaximum !== undefined && value >= exclusiveMaximum) return { key: "form.below", params: { bound: exclusiveMaximum } }
  return null
}

/** One entry a line; a field that may also be a fixed word or a number takes that on a line of its own. */
function readLines(field: FormField, text: string): Reading {
  if (field.words.includes(text)) return { value: text }
  if (field.ranges.length > 0 && Number.isFinite(Number(text))) return readNumber(field, text)
  return { value: text.split("\n").map((line) => line.trim()).filter(Boolean) }
}

function readJson(text: string): Reading {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return { complaint: { key: "form.json" } }
  }
}

/** True when what is typed is something else than the default. */
export function isChanged(field: FormField, draft: string | undefined): boolean {
  if (draft === undefined || draft.trim() === "") return false
  const reading = readDraft(field, draft)
  if (reading === "default") return false
  return "complaint" in reading || JSON.stringify(reading.value) !== JSON.stringify(field.fallback ?? null)
}

export interface FormReading {
  /** Only what differs from the defaults: the hub fills in the rest, and shows what it chose. */
  config: Record<string, unknown>
  complaints: Record<string, Complaint>
}

export function readForm(fields: FormField[], drafts: Drafts): FormReading {
  const result: FormReading = { config: {}, complaints: {} }
  for (const field of fields) {
    const reading = readDraft(field, drafts[field.name] ?? "")
    if (reading === "default") continue
    if ("complaint" in reading) result.complaints[field.name] = reading.complaint
    else if (isChanged(field, drafts[field.name])) result.config[field.name] = reading.value
  }
  return result
}

/** The drafts that show an existing configuration, e.g. of a job that is duplicated. */
export function draftsOf(fields: FormField[], config: Record<string, unknown>): Drafts {
  const drafts: Drafts = {}
  for (const field of fields) {
    const value = config[field.name]
    if (value === undefined || JSON.stringify(value) === JSON.stringify(field.fallback ?? null)) continue
    drafts[field.name] = value === null ? NOTHING : draftOf(field, value)
  }
  return drafts
}
