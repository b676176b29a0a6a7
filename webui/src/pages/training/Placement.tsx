import { Link } from "react-router"
import type { PlacementOut, RankedWorker, TrainingJobOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Section } from "~/parts/Page"
import { Ago } from "~/parts/Values"

/** Which machines fit, soonest done first, which of them got the job, and why each of the others did not. */
export function Placement({ job }: { job: TrainingJobOut }) {
  const { t, phrase } = useWords()
  const { placement } = job
  const { ranked = [], refused = [] } = placement
  if (ranked.length === 0 && refused.length === 0) {
    return <p className="card max-w-4xl p-6 text-center text-sm text-muted">{job.waiting ? phrase(job.waiting) : t(job.status === "pending" ? "placement.pending" : "placement.nothing")}</p>
  }
  return (
    <div className="max-w-4xl">
      <Summary job={job} />
      {ranked.length > 0 && (
        <Section title={t("placement.ranking")}>
          <Ranking placement={placement} worker={job.worker_id} />
        </Section>
      )}
      {refused.length > 0 && (
        <Section title={t("placement.passed_over", { count: Math.max(placement.passed_over ?? 0, refused.length) })}>
          <ul className="card divide-y divide-line">
            {refused.map((worker) => (
              <li key={worker.worker_id} className="flex flex-wrap gap-x-4 gap-y-0.5 px-4 py-2 text-sm">
                <WorkerLink worker={worker} className="w-44 shrink-0 truncate" />
                <span className="min-w-0 flex-1 text-muted">{phrase(worker.reason)}</span>
              </li>
            ))}
          </ul>
        </Section>
      )}
    </div>
  )
}

function Summary({ job }: { job: TrainingJobOut }) {
  const { t, phrase, format } = useWords()
  const { chosen, memory_bytes: memory, tokens, at } = job.placement
  const facts = [
    memory ? t("placement.needs", { memory: format.bytes(memory) }) : null,
    tokens ? t("placement.tokens", { tokens: format.compact(tokens) }) : null,
  ].filter(Boolean)
  return (
    <div className="mb-5 text-sm">
      {/* Why a queued job waits stands above the tabs already. */}
      {job.status !== "queued" && chosen && <p>{t("placement.chosen_text", { name: chosen.name, reason: phrase(chosen.reason) })}</p>}
      <p className="num mt-1 text-muted">
        {facts.join(" · ")}
        {at && (
          <>
            {facts.length > 0 && " · "}
            {t("placement.looked")} <Ago time={at} />
          </>
        )}
      </p>
    </div>
  )
}

function Ranking({ placement, worker }: { placement: PlacementOut; worker: number | null }) {
  const { t, phrase, format } = useWords()
  const ranked = placement.ranked ?? []
  const chosen = placement.chosen?.worker_id ?? worker
  const slowest = Math.max(1, ...ranked.map((one) => (one.predicted_seconds ?? 0) + (one.wait_seconds ?? 0)))
  return (
    <ol className="card divide-y divide-line">
      {ranked.map((one, index) => (
        <li key={one.worker_id} className={`flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2.5 text-sm ${one.worker_id === chosen ? "bg-accent-soft" : ""}`}>
          <span className="num w-6 text-muted">{index + 1}.</span>
          <span className="flex w-44 min-w-0 shrink-0 items-center gap-2">
            <WorkerLink worker={one} className="truncate" />
            {one.worker_id === chosen && <span className="text-xs font-medium text-accent">{t("placement.chosen")}</span>}
          </span>
          <Prediction worker={one} slowest={slowest} />
          <span className="min-w-0 flex-1 text-muted max-sm:basis-full">
            {[phrase(one.reason), one.basis && phrase(one.basis)].filter(Boolean).join(" · ")}
            {one.busy && typeof one.wait_seconds === "number" && <> {t("placement.free_in", { time: format.duration(one.wait_seconds) })}</>}
          </span>
        </li>
      ))}
    </ol>
  )
}

/** How long the wait and the run would be there, as a bar beside the others'. */
function Prediction({ worker, slowest }: { worker: RankedWorker; slowest: number }) {
  const { t, format } = useWords()
  const { predicted_seconds: run, wait_seconds: wait } = worker
  if (typeof run !== "number") return <span className="w-52 text-muted">{t("placement.no_prediction")}</span>
  const share = (seconds: number) => `${(seconds / slowest) * 100}%`
  return (
    <span className="flex w-52 items-center gap-2">
      <span aria-hidden className="flex h-1.5 w-24 shrink-0 overflow-hidden rounded-full bg-sunken">
        <span className="bg-line-strong" style={{ width: share(wait ?? 0) }} />
        <span className="bg-accent" style={{ width: share(run) }} />
      </span>
      <span className="num whitespace-nowrap">{t("placement.about", { time: format.duration(run) })}</span>
    </span>
  )
}

function WorkerLink({ worker, className }: { worker: RankedWorker; className: string }) {
  return (
    <Link to={`/workers?worker=${worker.worker_id}`} className={`font-medium hover:underline ${className}`}>
      {worker.name}
    </Link>
  )
}
