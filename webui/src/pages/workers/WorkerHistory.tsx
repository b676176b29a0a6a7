import { CircleX, Gauge, LogIn, LogOut, SlidersHorizontal, TriangleAlert, type LucideIcon } from "lucide-react"
import { useState } from "react"
import { Link } from "react-router"
import { useOne, type Page } from "~/api/queries"
import type { FailureReason, WorkerEventKind, WorkerEventOut, WorkerOut } from "~/api/types.gen"
import { useWords, type Translate } from "~/i18n"
import { Segmented } from "~/parts/Field"
import { Loaded, Section } from "~/parts/Page"
import { Moment } from "~/parts/Values"

const ICONS: Record<WorkerEventKind, [LucideIcon, string]> = {
  came: [LogIn, "text-good"],
  went: [LogOut, "text-muted"],
  refused: [CircleX, "text-warn"],
  failed: [TriangleAlert, "text-bad"],
  measured: [Gauge, "text-muted"],
  changed: [SlidersHorizontal, "text-muted"],
}
const FAILURES = new Set<WorkerEventKind>(["failed", "refused", "went"])
const REFRESH = 15_000

/** What happened to the machine: newest first, all of it or only what went wrong. */
export function WorkerHistory({ worker }: { worker: WorkerOut }) {
  const { t } = useWords()
  const [view, setView] = useState<"all" | "bad">("all")
  const events = useOne<Page<WorkerEventOut>>(`/workers/${worker.id}/events`, { limit: 100 }, { refetchInterval: REFRESH })
  return (
    <Section
      title={t("workers.events")}
      actions={
        <Segmented
          label={t("workers.events")}
          value={view}
          onChange={setView}
          options={[
            { value: "all", label: t("workers.events_all") },
            { value: "bad", label: t("workers.events_bad") },
          ]}
        />
      }
    >
      <Loaded query={events}>
        {({ items }) => {
          const shown = items.filter(({ kind }) => view === "all" || FAILURES.has(kind))
          if (shown.length === 0) return <p className="card p-4 text-sm text-muted">{t(view === "all" ? "workers.no_events" : "workers.no_failures")}</p>
          return (
            <ol className="card max-h-96 divide-y divide-line overflow-y-auto">
              {shown.map((event) => (
                <Line key={event.id} event={event} />
              ))}
            </ol>
          )
        }}
      </Loaded>
    </Section>
  )
}

function Line({ event }: { event: WorkerEventOut }) {
  const { t, phrase } = useWords()
  const [Icon, tone] = ICONS[event.kind]
  return (
    <li className="flex items-start gap-3 px-4 py-2 text-sm">
      <Icon size={16} aria-label={t(`worker_event.${event.kind}`)} className={`mt-0.5 shrink-0 ${tone}`} />
      <span className="min-w-0 flex-1">
        {sentence(event, t, phrase)}
        {event.job_id !== null && (
          <Link to={`/training/${event.job_id}`} className="ml-2 whitespace-nowrap text-accent hover:underline">
            {t("workers.open_job")}
          </Link>
        )}
      </span>
      <span className="shrink-0 text-muted">
        <Moment time={event.at} />
      </span>
    </li>
  )
}

/** A failure begins with the name of its reason; people get its words. */
function sentence({ kind, text }: WorkerEventOut, t: Translate, phrase: (text: string) => string): string {
  const [name = "", ...rest] = text.split(": ")
  return kind === "failed" && isReason(name) ? `${t(`failure.${name}`)}. ${phrase(rest.join(": "))}` : phrase(text)
}

const REASONS: ReadonlySet<string> = new Set<FailureReason>([
  "user_error",
  "bad_data",
  "model_unavailable",
  "out_of_memory",
  "disk_full",
  "diverged",
  "timeout",
  "worker_lost",
  "preempted",
  "cancelled",
  "internal",
])

function isReason(name: string): name is FailureReason {
  return REASONS.has(name)
}
