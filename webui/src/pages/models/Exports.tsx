import { useMutation } from "@tanstack/react-query"
import { useState, type FormEvent } from "react"
import { Link } from "react-router"
import { apiUrl, post, problemAt } from "~/api/http"
import { useList, useRefresh, useRunning } from "~/api/queries"
import type { Accepted, ExportOut, ExporterOut, ModelOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { ErrorNote } from "~/parts/ErrorNote"
import { Field, Select } from "~/parts/Field"
import { Loaded, Section } from "~/parts/Page"
import { Progress } from "~/parts/Progress"
import { SchemaForm } from "~/parts/SchemaForm"
import { fieldsOf, readForm, type Drafts, type JsonSchema } from "~/parts/schema_fields"
import { StateBadge } from "~/parts/StateBadge"
import { Ago } from "~/parts/Values"
import { usePhase } from "../training/phase"
import { FileList } from "./Files"
import { Parity } from "./Parity"

export function Exports({ model }: { model: ModelOut }) {
  const { t } = useWords()
  const exports = useList<ExportOut>(`/models/${model.id}/exports`)
  return (
    <>
      {model.state === "ready" && <NewExport model={model} />}
      <Section title={t("exports.title")}>
        <Loaded query={exports} rows={2}>
          {({ items }) =>
            items.length === 0 ? (
              <p className="card p-6 text-center text-sm text-muted">{t("exports.empty")}</p>
            ) : (
              <div className="space-y-3">
                {items.map((one) => (
                  <ExportCard key={one.id} known={one} />
                ))}
              </div>
            )
          }
        </Loaded>
      </Section>
    </>
  )
}

function NewExport({ model }: { model: ModelOut }) {
  const { t } = useWords()
  const refresh = useRefresh()
  const exporters = useList<ExporterOut>("/exporters", { model_id: model.id })
  const [format, setFormat] = useState("")
  const [drafts, setDrafts] = useState<Drafts>({})
  const options = exporters.data?.items ?? []
  const chosen = options.find(({ name }) => name === format) ?? options.find(({ refuses }) => !refuses) ?? options[0]
  const fields = chosen ? fieldsOf(chosen.schema as JsonSchema) : []
  const reading = readForm(fields, drafts)
  const start = useMutation({
    mutationFn: () => post<Accepted>(`/models/${model.id}/export`, { format: chosen?.name, params: reading.config }),
    onSuccess: () => refresh("models", String(model.id), "exports"),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (Object.keys(reading.complaints).length === 0) start.mutate()
  }
  if (!chosen) return <ErrorNote error={exporters.error} />
  const problem = (name: string) => problemAt(start.error, "params", name)
  return (
    <Section title={t("exports.new")}>
      <form onSubmit={submit} className="card space-y-4 p-4">
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label={t("exports.format")} error={chosen.refuses ?? undefined}>
            {(control) => (
              <Select {...control} value={chosen.name} onChange={(event) => setFormat(event.target.value)}>
                {options.map(({ name, title }) => (
                  <option key={name} value={name}>
                    {title}
                  </option>
                ))}
              </Select>
            )}
          </Field>
        </div>
        <SchemaForm fields={fields} drafts={drafts} onChange={setDrafts} reading={reading} serverError={problem} />
        <ErrorNote error={start.error} except={(loc) => loc.startsWith("params.")} />
        <Button look="main" type="submit" busy={start.isPending} disabled={Boolean(chosen.refuses)}>
          {t("exports.start")}
        </Button>
      </form>
    </Section>
  )
}

function ExportCard({ known }: { known: ExportOut }) {
  const { t, phrase } = useWords()
  const phase = usePhase()
  const refresh = useRefresh()
  const reload = () => refresh("models", String(known.model_id), "exports")
  const shown = useRunning(`/exports/${known.id}`, known, reload)
  const cancel = useMutation({ mutationFn: () => post(`/exports/${known.id}/cancel`), onSuccess: reload })
  const retry = useMutation({ mutationFn: () => post(`/exports/${known.id}/retry`), onSuccess: reload })
  return (
    <article className="card p-4">
      <div className="mb-2 flex flex-wrap items-center gap-x-3 gap-y-1">
        <h3 className="font-medium">
          <Link to={`/exports/${known.id}`} className="hover:underline">
            {[shown.format.toUpperCase(), shown.params.quantization].filter(Boolean).join(" ")}
          </Link>
        </h3>
        <StateBadge state={shown.status} />
        <span className="ml-auto text-sm text-muted">
          <Ago time={shown.finished_at ?? shown.created_at} />
        </span>
      </div>
      {(shown.status === "running" || shown.status === "queued") && (
        <Progress
          label={t("exports.title")}
          phase={shown.status === "queued" ? t("state.queued") : phase(shown.phase)}
          fraction={shown.percent === null ? null : shown.percent / 100}
          actions={
            <Button onClick={() => cancel.mutate()} busy={cancel.isPending}>
              {t("common.cancel")}
            </Button>
          }
        />
      )}
      {shown.failure && (
        <div className="text-sm">
          <p className="text-bad">{phrase(shown.failure.message)}</p>
          {shown.failure.advice && <p className="mt-1">{phrase(shown.failure.advice)}</p>}
        </div>
      )}
      {shown.parity && <Parity parity={shown.parity} />}
      {shown.files.length > 0 && (
        <FileList files={shown.files} linkTo={(path) => apiUrl(`/exports/${shown.id}/download`, { path })} />
      )}
      {(shown.status === "failed" || shown.status === "cancelled") && (
        <Button className="mt-3" busy={retry.isPending} onClick={() => retry.mutate()}>
          {t("common.try_again")}
        </Button>
      )}
      <ErrorNote error={cancel.error ?? retry.error} />
    </article>
  )
}
