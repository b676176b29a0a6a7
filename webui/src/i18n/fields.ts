import type { FormField } from "~/parts/schema_fields"
import { useWords, type Language } from "."
import { ENGLISH_CHOICES } from "./en/fields"
import { FRENCH_CHOICES, FRENCH_GROUPS, FRENCH_HELP, FRENCH_MEASURES, FRENCH_PRESET_TEXTS, FRENCH_PRESET_TITLES, FRENCH_TITLES, FRENCH_UNITS } from "./fr/fields"

interface FieldWords {
  title: (field: FormField) => string
  help: (field: FormField) => string
  choice: (field: FormField, value: unknown) => string
  unit: (unit: string) => string
  groupTitle: (group: string) => string
  /** What an evaluator, or a figure that it found, is called. */
  measure: (name: string) => string
  presetTitle: (title: string) => string
  presetText: (description: string) => string
}

/** The words of a generated form: the schema speaks English; for fields that we know, French is ours. */
export function useFieldWords(): FieldWords {
  return fieldWords(useWords().language)
}

function fieldWords(language: Language): FieldWords {
  const french = <T extends Record<string, string>>(words: T, key: string) => (language === "fr" ? (words[key] ?? key) : key)
  return {
    title: (field) => french(FRENCH_TITLES, field.title),
    help: (field) => french(FRENCH_HELP, field.help),
    choice: (_, value) => choiceWords(language === "fr" ? FRENCH_CHOICES : ENGLISH_CHOICES, value),
    unit: (unit) => french(FRENCH_UNITS, unit),
    groupTitle: (group) => french(FRENCH_GROUPS, group),
    measure: (name) => french(FRENCH_MEASURES, name),
    presetTitle: (title) => french(FRENCH_PRESET_TITLES, title),
    presetText: (description) => french(FRENCH_PRESET_TEXTS, description),
  }
}

/** The words, then the name that files and logs use: "Adapter (lora)". */
function choiceWords(words: Record<string, string>, value: unknown): string {
  const name = String(value)
  const known = words[name]
  if (known === undefined) return name
  return typeof value === "boolean" || name === "auto" ? known : `${known} (${name})`
}
