import { useMutation } from "@tanstack/react-query"
import { lazy, Suspense, useEffect, useMemo, useRef, useState, type FormEvent } from "react"
import { useNavigate, useSearchParams } from "react-router"
import { ApiProblem, post } from "~/api/http"
import { storeFresh, useList, useOne } from "~/api/queries"
import type { DatasetOut, ModelOut, PresetOut, TrainerOut, TrainingDraftIn, TrainingJobOut, WorkerOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { useFieldWords } from "~/i18n/fields"
import { Button } from "~/parts/Button"
import { ErrorNote, problemText } from "~/parts/ErrorNote"
import { Segmented } from "~/parts/Field"
import { Loaded, Page, Skeletons } from "~/parts/Page"
import { SchemaForm } from "~/parts/SchemaForm"
import { draftsOf, fieldsOf, readForm, startingFrom, type FormField, type JsonSchema } from "~/parts/schema_fields"
import { bodyOf, draftFrom, firstDraft, plainBody, suggestName, type Choices } from "./draft"
import { useDraftCheck } from "./draft_check"
import { MainChoices, OtherChoices } from "./MainChoices"
import { PlanPanel } from "./PlanPanel"
import { PresetChoice } from "./PresetChoice"
import { problemsOf, unplaced } from "./problems"
import { WorkerChoice } from "./WorkerChoice"

const YamlView = lazy(() => import("./YamlView"))
const CONTROLS = new Set(["name", "dataset_id", "model_id", "validation_dataset_id", "preset"])
const SELECTED = ["worker_ids", "parsyn_worker_ids", "gpu_type", "mode"]

export default function NewTrainingPage() {
  const { t } = useWords()
  const [params] = useSearchParams()
  const [isYaml, setYaml] = useState(false)
  const from = params.get("from")
  const trainers = useOne<{ items: TrainerOut[] }>("/trainers")
  const presets = useList<PresetOut>("/presets")
  const original = useOne<TrainingJobOut>(from ? `/training-jobs/${from}` : null)
  const isWaiting = presets.isPending || (from !== null && original.isPending)
  return (
    <Page
      title={t("training.new")}
      parent={{ label: t("nav.training"), to: "/training" }}
      actions={
        <Segmented
          label={t("form.view")}
          value={isYaml ? "yaml" : "form"}
          onChange={(view) => setYaml(view === "yaml")}
          options={[
            { value: "form", label: t("form.view_form") },
            { value: "yaml", label: "YAML" },
          ]}
        />
      }
    >
      <Loaded query={isWaiting ? { data: undefined, error: null } : trainers} rows={5}>
        {({ items }) => <Form key={from} isYaml={isYaml} trainers={items} presets={presets.data?.items ?? []} original={original.data} />}
      </Loaded>
    </Page>
  )
}

interface FormProps {
  isYaml: boolean
  trainers: TrainerOut[]
  presets: PresetOut[]
  original: TrainingJobOut | undefined
}

function Form({ isYaml, trainers, presets, original }: FormProps) {
  const { t, phrase } = useWords()
  const { presetTitle } = useFieldWords()
  const navigate = useNavigate()
  const [params] = useSearchParams()
  const datasets = useList<DatasetOut>("/datasets").data?.items ?? []
  const models = useList<ModelOut>("/models").data?.items ?? []
  const workers = useList<WorkerOut>("/workers").data?.items
  const fieldsFrom = useFields(trainers, presets)
  const [draft, setDraft] = useState(() => {
    const trainer = original?.trainer ?? trainers[0]?.name ?? "sft"
    return firstDraft(params, original, trainer, fieldsFrom(trainer, original?.preset ?? ""))
  })
  const { choices, drafts, selection, extras } = draft
  const ours = presets.filter(({ trainer }) => trainer === choices.trainer)
  const preset = ours.find(({ name }) => name === choices.preset)
  const fields = fieldsFrom(choices.trainer, choices.preset)
  const reading = readForm(fields, drafts)
  const dataset = datasets.find(({ id }) => String(id) === choices.datasetId)
  const model = models.find(({ id }) => String(id) === choices.modelId)
  const body = bodyOf(draft, reading, suggestName(dataset, model))
  const check = useDraftCheck(body)
  const [sent, setSent] = useState<TrainingDraftIn | undefined>(undefined)
  const create = useMutation({
    mutationFn: (isStarted: boolean) => createJob(plainBody(body), isStarted),
    onMutate: () => setSent(body),
    onSuccess: ({ job, refused }) => {
      storeFresh("training-jobs", job)
      void navigate(`/training/${job.id}`, { state: { refused: refused && problemText(refused, t, phrase) } })
    },
  })
  const error = create.error instanceof ApiProblem ? create.error : null
  const problem = problemsOf(body, check, error, sent)
  const hasControl = (loc: string) =>
    !isYaml && (CONTROLS.has(loc) || loc.startsWith("worker_selection") || (loc === "trainer" ? trainers.length > 1 : fields.some(({ name }) => loc === `config.${name}`)))
  const isAtFields = error !== null && error.errors.length > 0 && unplaced(error.errors, hasControl).length === 0
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => {
    if (error) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus()
  }, [error])
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (Object.keys(reading.complaints).length === 0) create.mutate(true)
  }
  const choose = (next: Choices) => setDraft({ ...draft, choices: next })
  // What one has set oneself stays where one changes the preset below it.
  const choosePreset = (name: string) => {
    const next = fieldsFrom(choices.trainer, name)
    setDraft({ ...draft, choices: { ...choices, preset: name }, drafts: draftsOf(next, reading.config) })
  }
  const shared = { choices, onChange: choose, datasets, models, trainers, problem }
  return (
    <form ref={form} onSubmit={submit} className="grid gap-6 lg:grid-cols-[minmax(0,1fr)_320px]">
      <div className="min-w-0 space-y-6">
        {isYaml ? (
          <section className="card p-4">
            <Suspense fallback={<Skeletons rows={1} height={300} />}>
              <YamlView
                body={plainBody(bodyOf(draft, reading))}
                onChange={(read) => setDraft(draftFrom(read, fieldsFrom, choices.trainer))}
                errors={check.said?.errors ?? []}
              />
            </Suspense>
          </section>
        ) : (
          <>
            <section className="card space-y-5 p-4">
              <MainChoices {...shared} />
              <PresetChoice
                presets={ours}
                trainer={choices.trainer}
                value={choices.preset}
                onChange={choosePreset}
                onSaved={(name) => setDraft({ ...draft, choices: { ...choices, preset: name }, drafts: {} })}
                config={{ ...preset?.config, ...reading.config }}
                isChanged={Object.keys(reading.config).length > 0 && Object.keys(reading.complaints).length === 0}
                problem={problem("preset")}
              />
            </section>
            <OtherChoices {...shared}>
              <WorkerChoice
                workers={workers ?? []}
                value={selection}
                onChange={(next) => setDraft({ ...draft, selection: next })}
                problem={firstOf(SELECTED, (key) => problem("worker_selection", key) ?? problem("worker_selection", key, 0))}
              />
            </OtherChoices>
            <section className="card p-4">
              <h2 className="mb-4 font-semibold">{t("training.settings")}</h2>
              <SchemaForm
                fields={fields}
                drafts={drafts}
                onChange={(next) => setDraft({ ...draft, drafts: next })}
                reading={reading}
                serverError={(name) => problem("config", name)}
                preset={preset && { title: preset.builtin ? presetTitle(preset.title) : preset.title, config: preset.config }}
              />
              <Extras extras={extras} problem={(name) => problem("config", name)} />
            </section>
          </>
        )}
      </div>
      <aside className="min-w-0 space-y-4 lg:sticky lg:top-18 lg:self-start">
        <PlanPanel check={check} model={model} online={workers ? workers.filter(({ status }) => status !== "offline").length : null} />
        <div className="flex flex-col gap-2 max-sm:pb-12">
          <div className="flex flex-col gap-2 max-sm:fixed max-sm:inset-x-0 max-sm:bottom-14 max-sm:z-20 max-sm:border-t max-sm:border-line max-sm:bg-surface max-sm:px-4 max-sm:py-2">
            {!isAtFields && <ErrorNote error={create.error} except={hasControl} />}
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

/** The fields of a trainer as they stand when one starts from a preset of it. */
function useFields(trainers: TrainerOut[], presets: PresetOut[]): (trainer: string, preset: string) => FormField[] {
  const plain = useMemo(() => new Map(trainers.map(({ name, schema }) => [name, fieldsOf(schema as JsonSchema)])), [trainers])
  return (trainer, preset) => {
    const config = presets.find((one) => one.trainer === trainer && one.name === preset)?.config
    return startingFrom(plain.get(trainer) ?? [], config ?? {})
  }
}

/** Settings that were written as YAML and have no control. */
function Extras({ extras, problem }: { extras: Record<string, unknown>; problem: (name: string) => string | undefined }) {
  const { t, phrase } = useWords()
  const entries = Object.entries(extras)
  if (entries.length === 0) return null
  return (
    <div className="mt-4 text-sm">
      <p className="text-muted">{t("form.extras")}</p>
      <ul>
        {entries.map(([name, value]) => (
          <li key={name}>
            <code className="font-mono text-[13px]">
              {name}: {JSON.stringify(value)}
            </code>{" "}
            {problem(name) && <span className="text-bad">{phrase(problem(name) ?? "")}</span>}
          </li>
        ))}
      </ul>
    </div>
  )
}

function firstOf<T>(keys: string[], find: (key: string) => T | undefined): T | undefined {
  return keys.map(find).find((found) => found !== undefined)
}

/** A job that was made but could not be started stays, pending, with the reason on its page. */
async function createJob(body: Record<string, unknown>, isStarted: boolean): Promise<{ job: TrainingJobOut; refused?: ApiProblem }> {
  const job = await post<TrainingJobOut>("/training-jobs", body)
  if (!isStarted) return { job }
  try {
    return { job: await post<TrainingJobOut>(`/training-jobs/${job.id}/start`) }
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error
    return { job, refused: error }
  }
}
