import { Link } from "react-router"
import type { ProgressOut, TrainingJobOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Progress } from "~/parts/Progress"
import { Ago } from "~/parts/Values"
import type { SeriesByName } from "./job_stream"
import { usePhase } from "./phase"

/** Where the job stands: progress while it goes, why it waits, or how long it took. */
export function JobSummary({ job, progress, series }: { job: TrainingJobOut; progress: ProgressOut | null; series: SeriesByName }) {
  const { t } = useWords()
  const latest = (name: string) => lastValue(series, name) ?? job.metrics_latest[name]
  return (
    <section className="card mb-5 p-4">
      <State job={job} progress={progress ?? job.progress} speed={latest("tokens_per_second")} />
      {job.unreachable_since && (
        <p className="mt-3 rounded-lg bg-warn-soft px-3 py-2 text-sm text-warn">
          {t("training.unreachable", { worker: job.worker_name ?? "" })} <Ago time={job.unreachable_since} />
        </p>
      )}
      <dl className="mt-3 flex flex-wrap gap-x-8 gap-y-2 border-t border-line pt-3 text-sm">
        <Fact name={t("training.model")} to={`/models/${job.model_id}`} value={job.model_name ?? `#${job.model_id}`} />
        <Fact name={t("training.dataset")} to={`/datasets/${job.dataset_id}`} value={job.dataset_name ?? `#${job.dataset_id}`} />
        {job.worker_id !== null && <Fact name={t("training.worker")} to={`/workers?worker=${job.worker_id}`} value={job.worker_name ?? `#${job.worker_id}`} />}
        <Latest loss={latest("loss")} evalLoss={latest("eval_loss")} />
      </dl>
    </section>
  )
}

function lastValue(series: SeriesByName, name: string): number | undefined {
  return series[name]?.at(-1)?.[2] ?? undefined
}

function State({ job, progress, speed }: { job: TrainingJobOut; progress: ProgressOut; speed: number | undefined }) {
  const { t, phrase, format } = useWords()
  const phase = usePhase()
  if (job.status === "running") {
    return (
      <Progress
        label={job.name}
        phase={phase(progress.phase)}
        fraction={typeof progress.percent === "number" ? progress.percent / 100 : null}
        etaSeconds={progress.eta_seconds}
        facts={[
          typeof progress.step === "number" ? t("training.step_of", { step: progress.step, total: progress.total_steps ?? "?" }) : null,
          typeof progress.epoch === "number" ? t("training.epoch", { epoch: format.number(progress.epoch, 2) }) : null,
          typeof speed === "number" ? t("training.speed", { speed: Math.round(speed) }) : null,
        ]}
      />
    )
  }
  if (job.status === "queued") return <p>{job.waiting ? phrase(job.waiting) : t("training.queued_text")}</p>
  if (job.status === "pending") return <p className="text-muted">{t("training.pending_text")}</p>
  const seconds = job.started_at && job.finished_at ? (Date.parse(job.finished_at) - Date.parse(job.started_at)) / 1000 : null
  return (
    <p className="num">
      {seconds === null ? t("training.never_ran") : t("training.took", { time: format.duration(seconds) })} <Ago time={job.finished_at} />
    </p>
  )
}

function Latest({ loss, evalLoss }: { loss: number | undefined; evalLoss: number | undefined }) {
  const { t, format } = useWords()
  return (
    <>
      {loss !== undefined && <Fact name={t("charts.loss_train")} value={format.metric(loss)} />}
      {evalLoss !== undefined && <Fact name={t("charts.loss_validation")} value={format.metric(evalLoss)} />}
    </>
  )
}

function Fact({ name, value, to }: { name: string; value: string; to?: string }) {
  return (
    <div className="min-w-0">
      <dt className="text-muted">{name}</dt>
      <dd className="num max-w-72 truncate font-medium">
        {to ? (
          <Link to={to} className="hover:underline">
            {value}
          </Link>
        ) : (
          value
        )}
      </dd>
    </div>
  )
}
