import { RotateCcw } from "lucide-react"
import { useState } from "react"
import { useWords } from "~/i18n"
import { useFieldWords } from "~/i18n/fields"
import { Button } from "./Button"
import { Field, Input, Select, Switch, TextArea } from "./Field"
import { canBeNothing, draftOf, groupsOf, isChanged, NOTHING, type Drafts, type FormField, type FormReading } from "./schema_fields"

interface Props {
  fields: FormField[]
  drafts: Drafts
  onChange: (drafts: Drafts) => void
  reading: FormReading
  /** The hub's own message for a field, if it refused it. */
  serverError?: (name: string) => string | undefined
  /** Shown as placeholder where the default is decided elsewhere. */
  effective?: Record<string, unknown>
  /** What one starts from where it is not the defaults; the fallbacks of `fields` are its values already. */
  preset?: { title: string; config: Record<string, unknown> } | undefined
}

/** A form for any JSON schema: plain fields first, advanced ones folded, what differs from the default is marked. */
export function SchemaForm(props: Props) {
  const { t } = useWords()
  const [isOpen, setOpen] = useState(false)
  const simple = props.fields.filter((field) => !field.advanced)
  const advanced = props.fields.filter((field) => field.advanced)
  const changed = props.fields.filter((field) => isChanged(field, props.drafts[field.name]))
  const hiddenProblem = advanced.some((field) => props.reading.complaints[field.name] ?? props.serverError?.(field.name))
  const hiddenChanges = advanced.filter((field) => changed.includes(field)).length
  return (
    <div className="space-y-6">
      <Groups {...props} fields={simple} />
      {advanced.length > 0 && (
        <details className="card group/fold" open={isOpen || hiddenProblem} onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary className="flex items-center justify-between gap-2 px-4 py-3 font-medium">
            <span>
              <span aria-hidden className="mr-2 inline-block text-muted transition-transform group-open/fold:rotate-90">
                ›
              </span>
              {t("form.advanced")}
            </span>
            <span className="num text-sm font-normal text-muted">
              {hiddenChanges > 0 ? t("form.changed", { count: hiddenChanges }) : t("form.settings", { count: advanced.length })}
            </span>
          </summary>
          <div className="border-t border-line p-4">
            <Groups {...props} fields={advanced} />
          </div>
        </details>
      )}
      {changed.length > 0 && (
        <Button look="quiet" onClick={() => props.onChange({})}>
          <RotateCcw size={15} aria-hidden /> {props.preset ? t("form.reset_to", { name: props.preset.title, count: changed.length }) : t("form.reset", { count: changed.length })}
        </Button>
      )}
    </div>
  )
}

function Groups({ fields, ...rest }: Props) {
  const { groupTitle } = useFieldWords()
  const groups = groupsOf(fields)
  return (
    <div className="space-y-6">
      {groups.map(([group, members]) => (
        <fieldset key={group} className="min-w-0">
          {group && groups.length > 1 && <legend className="mb-2 text-sm font-semibold text-muted">{groupTitle(group)}</legend>}
          <div className="grid gap-x-5 gap-y-4 sm:grid-cols-2">
            {members.map((field) => (
              <OneField key={field.name} field={field} {...rest} />
            ))}
          </div>
        </fieldset>
      ))}
    </div>
  )
}

function OneField({ field, drafts, onChange, reading, serverError, effective, preset }: Omit<Props, "fields"> & { field: FormField }) {
  const { t, phrase } = useWords()
  const words = useFieldWords()
  const start = preset && field.name in preset.config ? preset.title : undefined
  const defaultText = useDefaultText(start)
  const draft = drafts[field.name] ?? ""
  const complaint = reading.complaints[field.name]
  const refusal = serverError?.(field.name)
  const error = complaint ? t(complaint.key, complaint.params) : refusal && phrase(refusal)
  const set = (text: string) => onChange({ ...drafts, [field.name]: text })
  const shownDefault = effective?.[field.name] ?? field.fallback
  const mark = isChanged(field, draft) ? (
    <button type="button" onClick={() => set("")} className="text-xs text-accent hover:underline" title={t("form.back_to_default")}>
      {defaultText(field, shownDefault)}
    </button>
  ) : (
    start && <span className="text-xs text-muted">{start}</span>
  )
  return (
    <Field label={words.title(field)} hint={words.help(field)} error={error} aside={mark}>
      {(control) => <Control control={control} field={field} draft={draft} set={set} fallback={shownDefault} placeholder={defaultText(field, shownDefault)} />}
    </Field>
  )
}

interface ControlProps {
  control: { id: string; "aria-describedby": string | undefined; "aria-invalid": boolean }
  field: FormField
  draft: string
  set: (text: string) => void
  fallback: unknown
  placeholder: string
}

function Control({ control, field, draft, set, fallback, placeholder }: ControlProps) {
  const { t } = useWords()
  const words = useFieldWords()
  if (field.kind === "switch") {
    const isOn = draft === "" ? fallback === true : draft === "true"
    return (
      <div className="flex h-9 items-center">
        <Switch id={control.id} checked={isOn} onChange={(checked) => set(checked === (fallback === true) ? "" : String(checked))} />
      </div>
    )
  }
  if (field.kind === "choice") {
    return (
      <Select {...control} value={draft === "" ? draftOf(field, fallback) : draft} onChange={(event) => set(event.target.value)}>
        {(field.nullable || fallback === undefined) && <option value={canBeNothing(field) ? NOTHING : ""}>{t("form.none")}</option>}
        {field.choices.map((choice) => (
          <option key={String(choice)} value={String(choice)}>
            {words.choice(field, choice)}
          </option>
        ))}
      </Select>
    )
  }
  if (field.kind === "lines" || field.kind === "json") {
    return <TextArea {...control} rows={3} value={draft} placeholder={placeholder} onChange={(event) => set(event.target.value)} />
  }
  return (
    <div className="relative">
      <Input
        {...control}
        className={`${field.kind === "number" ? "num" : ""} ${field.unit ? "!pr-20" : ""}`}
        inputMode={field.kind === "number" && field.words.length === 0 ? "decimal" : "text"}
        autoComplete="off"
        spellCheck={false}
        value={draft}
        placeholder={placeholder}
        onChange={(event) => set(event.target.value)}
      />
      {field.unit && (
        <span className="pointer-events-none absolute inset-y-0 right-3 flex items-center text-sm text-muted">{words.unit(field.unit)}</span>
      )}
    </div>
  )
}

/** "default: 3", or "Quick try: 1" where one starts from a preset that says something of the field. */
function useDefaultText(start?: string): (field: FormField, value: unknown) => string {
  const { t, format } = useWords()
  const words = useFieldWords()
  const valueText = (field: FormField, value: unknown): string => {
    if (typeof value === "number") return format.typed(value)
    if (typeof value === "boolean") return words.choice(field, value)
    if (field.kind === "choice" && value !== null && value !== undefined) return words.choice(field, value)
    return draftOf(field, value) || t("form.none")
  }
  return (field, value) => (start ? t("form.start_was", { start, value: valueText(field, value) }) : t("form.default_was", { value: valueText(field, value) }))
}
