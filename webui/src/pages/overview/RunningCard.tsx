import { useState } from "react"
import { Link } from "react-router"
import { useTopic } from "~/api/live"
import { useOne } from "~/api/queries"
import type { JobOut, MetricsOut, ProgressOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Progress } from "~/parts/Progress"
import { Sparkline } from "~/parts/Sparkline"
import { mergePoints, type Point } from "~/parts/series"
import { usePhase } from "../training/phase"
import { jobPath } from "./job_path"

/** A running job with its live loss and how long it still takes. */
export function RunningCard({ job }: { job: JobOut }) {
  const { t, format } = useWords()
  const phase = usePhase()
  const isTraining = job.kind === "training"
  const past = useOne<MetricsOut>(isTraining ? `/training-jobs/${job.id}/metrics` : null, { names: "loss" })
  const [fresh, setFresh] = useState<Point[]>([])
  const [progress, setProgress] = useState<ProgressOut | null>(null)
  useTopic(`job:${job.id}`, ({ type, data }) => {
    if (type === "job.progress") setProgress(data as unknown as ProgressOut)
    if (type === "job.metrics") setFresh((known) => mergePoints(known, lossOf(data)))
  })
  const shown = progress ?? job.progress
  const points = mergePoints((past.data?.series.loss ?? []) as Point[], fresh)
  const last = points[points.length - 1]
  const percent = shown.percent
  return (
    <article className="card min-w-0 p-4">
      <div className="mb-2 flex items-baseline justify-between gap-3">
        <Link to={jobPath(job)} className="min-w-0 truncate font-medium hover:underline">
          {job.name}
        </Link>
        <span className="shrink-0 text-sm text-muted">{job.worker_name}</span>
      </div>
      <Progress
        label={job.name}
        phase={phase(shown.phase)}
        fraction={typeof percent === "number" ? percent / 100 : null}
        etaSeconds={shown.eta_seconds}
        facts={[typeof shown.step === "number" ? t("training.step_of", { step: shown.step, total: shown.total_steps ?? "?" }) : null]}
      />
      {isTraining && (
        <div className="mt-2 flex items-end gap-3">
          <div className="min-w-0 flex-1">
            <Sparkline values={points.slice(-300).map((point) => point[2])} label={t("training.loss")} />
          </div>
          <div className="num shrink-0 text-right text-sm">
            <div className="text-xs text-muted">{t("training.loss")}</div>
            {last ? format.metric(last[2]) : "–"}
          </div>
        </div>
      )}
    </article>
  )
}

function lossOf(data: Record<string, unknown>): Point[] {
  const points = (data.points ?? []) as { step: number; at: number; values: Record<string, number> }[]
  return points.flatMap(({ step, at, values }) => (values.loss === undefined ? [] : [[step, at, values.loss] as const]))
}
