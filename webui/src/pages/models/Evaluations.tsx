import { useMutation } from "@tanstack/react-query"
import { useState, type FormEvent } from "react"
import { Link } from "react-router"
import { post, problemAt } from "~/api/http"
import { useList, useOne, useRefresh, useRunning } from "~/api/queries"
import type { Accepted, DatasetOut, EvaluationOut, EvaluatorOut, ModelOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { useFieldWords } from "~/i18n/fields"
import { Button } from "~/parts/Button"
import { ErrorNote } from "~/parts/ErrorNote"
import { Field, Select } from "~/parts/Field"
import { Loaded, Section } from "~/parts/Page"
import { Progress } from "~/parts/Progress"
import { SchemaForm } from "~/parts/SchemaForm"
import { fieldsOf, readForm, type Drafts, type JsonSchema } from "~/parts/schema_fields"
import { StateBadge } from "~/parts/StateBadge"
import { Ago } from "~/parts/Values"
import { isTrainable } from "../datasets/shape"
import { usePhase } from "../training/phase"

export function Evaluations({ model }: { model: ModelOut }) {
  const { t } = useWords()
  const evaluations = useList<EvaluationOut>("/evaluations", { model_id: model.id })
  return (
    <>
      {model.state === "ready" && <NewEvaluation model={model} />}
      <Section title={t("evaluations.title")}>
        <Loaded query={evaluations} rows={2}>
          {({ items }) =>
            items.length === 0 ? (
              <p className="card p-6 text-center text-sm text-muted">{t("evaluations.empty")}</p>
            ) : (
              <div className="space-y-3">
                {items.map((one) => (
                  <Result key={one.id} known={one} />
                ))}
              </div>
            )
          }
        </Loaded>
      </Section>
    </>
  )
}

function NewEvaluation({ model }: { model: ModelOut }) {
  const { t } = useWords()
  const { measure } = useFieldWords()
  const refresh = useRefresh()
  const datasets = (useList<DatasetOut>("/datasets").data?.items ?? []).filter(isTrainable)
  const evaluators = useList<EvaluatorOut>("/evaluators").data?.items ?? []
  const [datasetId, setDatasetId] = useState("")
  const [name, setName] = useState("")
  const [drafts, setDrafts] = useState<Drafts>({})
  const evaluator = evaluators.find((one) => one.name === name) ?? evaluators[0]
  const fields = evaluator ? fieldsOf(evaluator.schema as JsonSchema) : []
  const reading = readForm(fields, drafts)
  const start = useMutation({
    mutationFn: () =>
      post<Accepted>("/evaluations", { model_id: model.id, dataset_id: Number(datasetId), evaluator: evaluator?.name, params: reading.config }),
    onSuccess: () => refresh("evaluations"),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (Object.keys(reading.complaints).length === 0) start.mutate()
  }
  const problem = (...loc: string[]) => problemAt(start.error, ...loc)
  return (
    <Section title={t("evaluations.new")}>
      <form onSubmit={submit} className="card space-y-4 p-4">
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label={t("evaluations.dataset")} error={problem("dataset_id")}>
            {(control) => (
              <Select {...control} required value={datasetId} onChange={(event) => setDatasetId(event.target.value)}>
                <option value="">{t("common.choose")}</option>
                {datasets.map(({ id, name }) => (
                  <option key={id} value={id}>
                    {name}
                  </option>
                ))}
              </Select>
            )}
          </Field>
          <Field label={t("evaluations.evaluator")}>
            {(control) => (
              <Select {...control} value={evaluator?.name} onChange={(event) => setName(event.target.value)}>
                {evaluators.map(({ name, title }) => (
                  <option key={name} value={name}>
                    {measure(title)}
                  </option>
                ))}
              </Select>
            )}
          </Field>
        </div>
        <SchemaForm fields={fields} drafts={drafts} onChange={setDrafts} reading={reading} serverError={(field) => problem("params", field)} />
        <ErrorNote error={start.error} except={(loc) => loc === "dataset_id" || loc.startsWith("params.")} />
        <Button look="main" type="submit" busy={start.isPending}>
          {t("evaluations.start")}
        </Button>
      </form>
    </Section>
  )
}

function Result({ known }: { known: EvaluationOut }) {
  const { t, phrase, format } = useWords()
  const { measure } = useFieldWords()
  const phase = usePhase()
  const refresh = useRefresh()
  const shown = useRunning(`/evaluations/${known.id}`, known, () => refresh("evaluations"))
  const dataset = useOne<DatasetOut>(`/datasets/${known.dataset_id}`).data
  const cancel = useMutation({ mutationFn: () => post(`/evaluations/${known.id}/cancel`), onSuccess: () => refresh("evaluations") })
  return (
    <article className="card p-4">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <h3 className="font-medium">
          <Link to={`/evaluations/${known.id}`} className="hover:underline">
            {t("evaluations.on", { evaluator: measure(shown.evaluator), dataset: dataset?.name ?? `#${known.dataset_id}` })}
          </Link>
        </h3>
        <StateBadge state={shown.status} />
        <span className="ml-auto text-sm text-muted">
          <Ago time={shown.finished_at ?? shown.created_at} />
        </span>
      </div>
      {(shown.status === "running" || shown.status === "queued") && (
        <div className="mt-2">
          <Progress
            label={t("evaluations.title")}
            phase={shown.status === "queued" ? t("state.queued") : phase(shown.phase)}
            fraction={shown.percent === null ? null : shown.percent / 100}
            actions={
              <Button onClick={() => cancel.mutate()} busy={cancel.isPending}>
                {t("common.cancel")}
              </Button>
            }
          />
        </div>
      )}
      {shown.failure && <p className="mt-1 text-sm text-bad">{phrase(shown.failure.message)}</p>}
      {shown.metrics && (
        <dl className="mt-2 flex flex-wrap gap-x-8 gap-y-2">
          {Object.entries(shown.metrics).map(([name, metric]) => (
            <div key={name}>
              <dt className="text-sm text-muted">{measure(name)}</dt>
              <dd className="num text-lg font-semibold">
                {format.metric(metric.value)}
                {metric.stderr !== null && <span className="ml-1 text-sm font-normal text-muted">± {format.metric(metric.stderr)}</span>}
              </dd>
              <dd className="text-xs text-muted">{t(metric.better === "lower" ? "evaluations.lower" : "evaluations.higher")}</dd>
            </div>
          ))}
        </dl>
      )}
    </article>
  )
}
