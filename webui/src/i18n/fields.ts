import type { FormField } from "~/parts/schema_fields"
import { useWords, type Language } from "."
import { FRENCH_CHOICES, FRENCH_GROUPS, FRENCH_HELP, FRENCH_TITLES, FRENCH_UNITS } from "./fr/fields"

interface FieldWords {
  title: (field: FormField) => string
  help: (field: FormField) => string
  choice: (field: FormField, value: unknown) => string
  unit: (unit: string) => string
  groupTitle: (group: string) => string
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
    choice: (_, value) => french(FRENCH_CHOICES, String(value)),
    unit: (unit) => french(FRENCH_UNITS, unit),
    groupTitle: (group) => french(FRENCH_GROUPS, group),
  }
}
