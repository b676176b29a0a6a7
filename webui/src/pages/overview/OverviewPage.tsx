import { Check, Circle, Database, Server, Boxes, type LucideIcon } from "lucide-react"
import type { ReactNode } from "react"
import { Link } from "react-router"
import { useList, useOne } from "~/api/queries"
import type { JobOut, ModelOut, OverviewOut, WorkersSummary } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { ButtonLink } from "~/parts/Button"
import { Loaded, Page, Section } from "~/parts/Page"
import { StateBadge } from "~/parts/StateBadge"
import { Ago, Bytes, Count, Figure } from "~/parts/Values"
import { SampleButton } from "~/pages/datasets/SampleButton"
import { jobPath } from "./job_path"
import { RunningCard } from "./RunningCard"

export default function OverviewPage() {
  const { t } = useWords()
  const overview = useOne<OverviewOut>("/overview")
  return (
    <Page
      title={t("nav.overview")}
      actions={
        <ButtonLink look="main" to="/training/new">
          {t("training.new")}
        </ButtonLink>
      }
    >
      <Loaded query={overview}>{(data) => <Content data={data} />}</Loaded>
    </Page>
  )
}

function Content({ data }: { data: OverviewOut }) {
  const { t } = useWords()
  const waiting = new Set(data.needs_attention.map(keyOf))
  const recent = data.recent_jobs.filter((job) => !waiting.has(keyOf(job)))
  const isFirstVisit = data.datasets === 0 || data.models === 0 || data.workers === 0
  return (
    <>
      {isFirstVisit && <FirstSteps data={data} />}
      <Glance data={data} />
      {data.running.length > 0 && (
        <Section title={t("overview.running")}>
          <div className="grid grid-cols-1 gap-4 lg:grid-cols-2">
            {data.running.map((job) => (
              <RunningCard key={job.id} job={job} />
            ))}
          </div>
        </Section>
      )}
      {data.needs_attention.length > 0 && (
        <Section title={t("overview.attention")}>
          <JobList jobs={data.needs_attention} />
        </Section>
      )}
      <div className="grid grid-cols-1 gap-x-6 lg:grid-cols-2">
        {(recent.length > 0 || waiting.size === 0) && (
          <Section title={t("overview.recent_jobs")}>
            {recent.length > 0 ? <JobList jobs={recent} /> : <Nothing text={t("overview.no_jobs")} />}
          </Section>
        )}
        <RecentModels />
      </div>
    </>
  )
}

/** Ids are counted for each kind of job on its own. */
function keyOf({ kind, id }: JobOut): string {
  return `${kind}-${id}`
}

function FirstSteps({ data }: { data: OverviewOut }) {
  const { t } = useWords()
  return (
    <Section title={t("overview.start")}>
      <ol className="grid gap-4 md:grid-cols-3">
        <Step icon={Database} done={data.datasets > 0} title={t("overview.step_data")} text={t("overview.step_data_text")} to="/datasets?add=1" action={t("datasets.add")} extra={data.datasets === 0 && <SampleButton />} />
        <Step icon={Boxes} done={data.models > 0} title={t("overview.step_model")} text={t("overview.step_model_text")} to="/models?add=1" action={t("models.add")} />
        <Step icon={Server} done={data.workers > 0} title={t("overview.step_worker")} text={t("overview.step_worker_text")} to="/workers?add=1" action={t("workers.add")} />
      </ol>
    </Section>
  )
}

function Step(props: { icon: LucideIcon; done: boolean; title: string; text: string; to: string; action: string; extra?: ReactNode }) {
  const { t } = useWords()
  const Mark = props.done ? Check : Circle
  return (
    <li className="card flex flex-col p-4">
      <div className="flex items-center gap-2 font-medium">
        <props.icon size={17} aria-hidden className="text-muted" />
        {props.title}
        <span className={`ml-auto inline-flex items-center gap-1 text-xs font-medium ${props.done ? "text-good" : "text-muted"}`}>
          <Mark size={14} aria-hidden /> {props.done ? t("overview.step_done") : t("overview.step_open")}
        </span>
      </div>
      <p className="mt-1 mb-3 flex-1 text-sm text-muted">{props.text}</p>
      <div className="flex flex-wrap gap-2">
        <ButtonLink to={props.to} look={props.done ? "quiet" : "plain"}>
          {props.action}
        </ButtonLink>
        {props.extra}
      </div>
    </li>
  )
}

function Glance({ data }: { data: OverviewOut }) {
  const { t, format } = useWords()
  const summary = useOne<WorkersSummary>("/workers/summary").data
  const use = summary?.avg_gpu_utilization
  return (
    <div className="mb-7 grid grid-cols-2 gap-3 lg:grid-cols-4">
      <Figure
        name={t("nav.workers")}
        value={summary ? t("overview.online_of", { online: summary.online, total: summary.total }) : "–"}
        hint={typeof use === "number" ? t("overview.gpu_use", { share: format.percent(use / 100) }) : undefined}
      />
      <Figure name={t("nav.datasets")} value={<Count value={data.datasets} />} />
      <Figure name={t("nav.models")} value={<Count value={data.models} />} />
      <Figure name={t("overview.storage")} value={<Bytes value={data.storage_bytes} />} />
    </div>
  )
}

function JobList({ jobs }: { jobs: JobOut[] }) {
  const { phrase } = useWords()
  return (
    <ul className="card divide-y divide-line">
      {jobs.map((job) => (
        <li key={keyOf(job)} className="flex items-center gap-3 px-4 py-2.5">
          <div className="min-w-0 flex-1">
            <Link to={jobPath(job)} className="block truncate text-sm font-medium hover:underline">
              {job.name}
            </Link>
            <p className="truncate text-sm text-muted">{phrase(job.failure?.message ?? job.waiting ?? "") || job.worker_name}</p>
          </div>
          <StateBadge state={job.status} />
          <span className="w-28 text-right text-sm text-muted max-sm:hidden">
            <Ago time={job.finished_at ?? job.started_at ?? job.created_at} />
          </span>
        </li>
      ))}
    </ul>
  )
}

function RecentModels() {
  const { t } = useWords()
  const models = useList<ModelOut>("/models").data?.items ?? []
  const recent = [...models].sort((a, b) => b.created_at.localeCompare(a.created_at)).slice(0, 6)
  return (
    <Section title={t("overview.recent_models")}>
      {recent.length === 0 ? (
        <Nothing text={t("overview.no_models")} />
      ) : (
        <ul className="card divide-y divide-line">
          {recent.map((model) => (
            <li key={model.id} className="flex min-h-14 items-center gap-3 px-4 py-2">
              <Link to={`/models/${model.id}`} className="min-w-0 flex-1 truncate text-sm font-medium hover:underline">
                {model.name}
              </Link>
              {model.state === "ready" ? (
                <ButtonLink to={`/chat?model=${model.id}`} look="quiet">
                  {t("models.chat")}
                </ButtonLink>
              ) : (
                <StateBadge state={model.state} />
              )}
            </li>
          ))}
        </ul>
      )}
    </Section>
  )
}

function Nothing({ text }: { text: string }) {
  return <p className="card px-4 py-6 text-center text-sm text-muted">{text}</p>
}
