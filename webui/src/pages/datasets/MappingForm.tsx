import { useMutation } from "@tanstack/react-query"
import { useState, type FormEvent } from "react"
import { patch, problemAt } from "~/api/http"
import { storeFresh, useRefresh } from "~/api/queries"
import type { DatasetOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { ErrorNote } from "~/parts/ErrorNote"
import { Field, Input, Select } from "~/parts/Field"
import { hasTurns, isMappable, SHAPE_FIELDS, TURN_KEYS, useShape, type MappableShape } from "./shape"

/** Which column holds what, for a file whose columns do not say so. */
export function MappingForm({ dataset }: { dataset: DatasetOut }) {
  const { t, format, phrase } = useWords()
  const shape = useShape()
  const refresh = useRefresh()
  const [kind, setKind] = useState<MappableShape>(() => firstShape(dataset))
  const [mapping, setMapping] = useState<Record<string, string>>(dataset.mapping ?? {})
  const { needed, optional } = SHAPE_FIELDS[kind]
  const fields: readonly string[] = [...needed, ...optional]
  const suggestions = (dataset.suggestions ?? []).filter(({ schema_kind }) => isMappable(schema_kind))
  const suggested = suggestions.find(({ schema_kind }) => schema_kind === kind)?.mapping ?? {}
  const valueOf = (field: string) => mapping[field] ?? suggested[field] ?? (dataset.columns.includes(field) ? field : "")
  const save = useMutation({
    mutationFn: () => patch<DatasetOut>(`/datasets/${dataset.id}`, { mapping: chosenOnly([...fields, ...(hasTurns(kind) ? TURN_KEYS : [])], valueOf) }),
    onSuccess: (fresh) => {
      storeFresh("datasets", fresh)
      refresh("datasets", String(dataset.id))
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    save.mutate()
  }
  const problem = (field: string) => problemAt(save.error, "mapping", field)
  const set = (field: string) => (event: { target: { value: string } }) => setMapping({ ...mapping, [field]: event.target.value })
  return (
    <form onSubmit={submit} className="card mb-6 border-warn p-4">
      <h2 className="font-semibold">{t("mapping.title")}</h2>
      <p className="mt-1 mb-4 text-sm text-muted">
        {dataset.candidates && dataset.candidates.length > 1
          ? t("mapping.several", { shapes: format.list(dataset.candidates.map(shape)) })
          : t("mapping.text", { columns: format.list(dataset.columns.slice(0, 12)) })}
      </p>
      {suggestions.length > 0 && (
        <div className="mb-4">
          <p className="mb-1 text-sm font-medium">{t("mapping.suggestions")}</p>
          <div className="flex flex-wrap gap-2">
            {suggestions.map((one) => (
              <button
                key={`${one.schema_kind} ${JSON.stringify(one.mapping)}`}
                type="button"
                aria-pressed={one.schema_kind === kind && Object.entries(one.mapping).every(([field, column]) => valueOf(field) === column)}
                onClick={() => {
                  if (isMappable(one.schema_kind)) setKind(one.schema_kind)
                  setMapping(one.mapping)
                }}
                className="min-h-8 rounded-full border border-line-strong px-3 text-left text-sm hover:bg-hover aria-pressed:border-accent aria-pressed:bg-accent-soft"
              >
                <span className="font-medium">{shape(one.schema_kind)}</span> <span className="text-muted">{phrase(one.reason)}</span>
              </button>
            ))}
          </div>
        </div>
      )}
      <div className="grid gap-4 sm:grid-cols-2 lg:grid-cols-3">
        <Field label={t("mapping.shape")}>
          {(control) => (
            <Select {...control} value={kind} onChange={(event) => isMappable(event.target.value) && setKind(event.target.value)}>
              {Object.keys(SHAPE_FIELDS).map((name) => (
                <option key={name} value={name}>
                  {isMappable(name) ? shape(name) : name}
                </option>
              ))}
            </Select>
          )}
        </Field>
        {fields.map((field) => (
          <Field key={field} label={field} hint={(needed as readonly string[]).includes(field) ? undefined : t("mapping.optional")} error={problem(field)}>
            {(control) => (
              <Select {...control} value={valueOf(field)} onChange={set(field)} required={(needed as readonly string[]).includes(field)}>
                <option value="">{t("mapping.no_column")}</option>
                {dataset.columns.map((column) => (
                  <option key={column}>{column}</option>
                ))}
              </Select>
            )}
          </Field>
        ))}
        {hasTurns(kind) &&
          TURN_KEYS.map((field) => (
            <Field key={field} label={t(`mapping.${field}`)} error={problem(field)} hint={t("mapping.optional")}>
              {(control) => <Input {...control} value={mapping[field] ?? ""} onChange={set(field)} placeholder={t(`mapping.${field}_example`)} />}
            </Field>
          ))}
      </div>
      <ErrorNote error={save.error} except={(loc) => loc.startsWith("mapping.")} />
      <Button look="main" type="submit" busy={save.isPending} className="mt-4">
        {t("mapping.save")}
      </Button>
    </form>
  )
}

function firstShape(dataset: DatasetOut): MappableShape {
  const kinds = [...(dataset.suggestions ?? []).map(({ schema_kind }) => schema_kind), ...(dataset.candidates ?? [])]
  return kinds.find(isMappable) ?? "prompt_completion"
}

function chosenOnly(fields: string[], valueOf: (field: string) => string): Record<string, string> {
  return Object.fromEntries(fields.flatMap((field) => (valueOf(field) ? [[field, valueOf(field)]] : [])))
}
