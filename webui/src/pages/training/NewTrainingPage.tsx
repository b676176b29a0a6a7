import { useMutation } from "@tanstack/react-query"
import { useEffect, useMemo, useRef, useState, type FormEvent } from "react"
import { useNavigate, useSearchParams } from "react-router"
import { ApiProblem, post } from "~/api/http"
import { storeFresh, useList, useOne } from "~/api/queries"
import type { DatasetOut, ModelOut, TrainerOut, TrainingJobIn, TrainingJobOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { ErrorNote, problemText } from "~/parts/ErrorNote"
import { Loaded, Page } from "~/parts/Page"
import { SchemaForm } from "~/parts/SchemaForm"
import { draftsOf, fieldsOf, readForm, type Drafts, type JsonSchema } from "~/parts/schema_fields"
import { MainChoices, suggestName, type Choices } from "./MainChoices"
import { PlanPanel } from "./PlanPanel"

const OWN_FIELDS = new Set(["name", "dataset_id", "model_id", "validation_dataset_id", "trainer"])

export default function NewTrainingPage() {
  const { t } = useWords()
  const [params] = useSearchParams()
  const from = params.get("from")
  const trainers = useOne<{ items: TrainerOut[] }>("/trainers")
  const original = useOne<TrainingJobOut>(from ? `/training-jobs/${from}` : null)
  const isWaiting = from !== null && !original.data && !original.error
  return (
    <Page title={t("training.new")} parent={{ label: t("nav.training"), to: "/training" }}>
      <Loaded query={isWaiting ? { data: undefined, error: null } : trainers} rows={5}>
        {({ items }) => <Form trainers={items} original={original.data} />}
      </Loaded>
    </Page>
  )
}

function Form({ trainers, original }: { trainers: TrainerOut[]; original: TrainingJobOut | undefined }) {
  const { t } = useWords()
  const navigate = useNavigate()
  const [params] = useSearchParams()
  const datasets = useList<DatasetOut>("/datasets").data?.items ?? []
  const models = useList<ModelOut>("/models").data?.items ?? []
  const [choices, setChoices] = useState<Choices>(() => firstChoices(params, original, trainers))
  const trainer = trainers.find(({ name }) => name === choices.trainer) ?? trainers[0]
  const fields = useMemo(() => fieldsOf((trainer?.schema ?? {}) as JsonSchema), [trainer])
  const [drafts, setDrafts] = useState<Drafts>(() => (original ? draftsOf(fields, original.config) : {}))
  const [sent, setSent] = useState<Drafts>({})
  const reading = readForm(fields, drafts)
  const dataset = datasets.find(({ id }) => String(id) === choices.datasetId)
  const model = models.find(({ id }) => String(id) === choices.modelId)
  const create = useMutation({
    mutationFn: (isStarted: boolean) => createJob(jobOf(choices, reading.config, suggestName(dataset, model)), isStarted),
    onMutate: () => setSent(drafts),
    onSuccess: ({ job, refused }) => {
      storeFresh("training-jobs", job)
      void navigate(`/training/${job.id}`, { state: { refused: refused && problemText(refused, t) } })
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (Object.keys(reading.complaints).length === 0) create.mutate(true)
  }
  const error = create.error instanceof ApiProblem ? create.error : null
  const isPlaced = (loc: string) => loc.startsWith("config.") || (loc === "trainer" ? trainers.length > 1 : OWN_FIELDS.has(loc))
  const isAtFields = isAllPlaced(error, isPlaced, (msg) => fields.some(({ name }) => msg.startsWith(`${name} `)))
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => {
    if (error) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus()
  }, [error])
  return (
    <form ref={form} onSubmit={submit} className="grid gap-6 lg:grid-cols-[minmax(0,1fr)_300px]" noValidate={false}>
      <div className="min-w-0 space-y-6">
        <MainChoices
          choices={choices}
          onChange={setChoices}
          datasets={datasets}
          models={models}
          trainers={trainers}
          problem={(field) => error?.at(field)}
        />
        <section className="card p-4">
          <h2 className="mb-4 font-semibold">{t("training.settings")}</h2>
          <SchemaForm
            fields={fields}
            drafts={drafts}
            onChange={setDrafts}
            reading={reading}
            serverError={(name) => (drafts[name] === sent[name] ? (error?.at("config", name) ?? aboutField(error, name)) : undefined)}
          />
        </section>
      </div>
      <aside className="min-w-0 space-y-4 lg:sticky lg:top-18 lg:self-start">
        <PlanPanel dataset={dataset} model={model} config={reading.config} fields={fields} />
        <div className="flex flex-col gap-2 max-sm:pb-12">
          <div className="flex flex-col gap-2 max-sm:fixed max-sm:inset-x-0 max-sm:bottom-14 max-sm:z-20 max-sm:border-t max-sm:border-line max-sm:bg-surface max-sm:px-4 max-sm:py-2">
            {!isAtFields && <ErrorNote error={create.error} except={isPlaced} />}
            <Button look="main" type="submit" busy={create.isPending}>
              {t("training.start")}
            </Button>
          </div>
          <Button onClick={() => create.mutate(false)} busy={create.isPending} disabled={!choices.datasetId || !choices.modelId}>
            {t("training.save_only")}
          </Button>
        </div>
      </aside>
    </form>
  )
}

function firstChoices(params: URLSearchParams, original: TrainingJobOut | undefined, trainers: TrainerOut[]): Choices {
  return {
    name: "",
    datasetId: params.get("dataset") ?? String(original?.dataset_id ?? ""),
    modelId: params.get("model") ?? String(original?.model_id ?? ""),
    validationId: String(original?.validation_dataset_id ?? ""),
    trainer: original?.trainer ?? trainers[0]?.name ?? "sft",
  }
}

function jobOf(choices: Choices, config: Record<string, unknown>, suggested: string): TrainingJobIn {
  return {
    name: choices.name.trim() || suggested,
    dataset_id: Number(choices.datasetId),
    model_id: Number(choices.modelId),
    validation_dataset_id: choices.validationId ? Number(choices.validationId) : null,
    trainer: choices.trainer,
    config,
  }
}

/** True where every message of a refusal is shown at the field that it means. */
function isAllPlaced(error: ApiProblem | null, isPlaced: (loc: string) => boolean, namesField: (msg: string) => boolean): boolean {
  if (!error || error.errors.length === 0) return false
  return error.errors.every(({ loc, msg }) => isPlaced(loc.join(".")) || (loc.join(".") === "config" && namesField(msg)))
}

/** What a trainer says of the whole configuration begins with the name of the setting that it means. */
function aboutField(error: ApiProblem | null, name: string): string | undefined {
  return error?.errors.find(({ loc, msg }) => loc.join(".") === "config" && msg.startsWith(`${name} `))?.msg
}

/** A job that was made but could not be started stays, pending, with the reason on its page. */
async function createJob(body: TrainingJobIn, isStarted: boolean): Promise<{ job: TrainingJobOut; refused?: ApiProblem }> {
  const job = await post<TrainingJobOut>("/training-jobs", body)
  if (!isStarted) return { job }
  try {
    return { job: await post<TrainingJobOut>(`/training-jobs/${job.id}/start`) }
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error
    return { job, refused: error }
  }
}
