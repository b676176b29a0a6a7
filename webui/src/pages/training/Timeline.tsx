import {
  Ban,
  CircleAlert,
  CircleCheck,
  CircleDashed,
  Clock,
  HandHelping,
  Play,
  WifiOff,
  type LucideIcon,
} from "lucide-react"
import { Link } from "react-router"
import { useList, useOne } from "~/api/queries"
import type { EventOut, WorkerOut } from "~/api/types.gen"
import { useWords, type Key } from "~/i18n"
import { Loaded } from "~/parts/Page"
import { isState } from "~/parts/StateBadge"
import { Moment } from "~/parts/Values"

const MARKS: Record<string, [LucideIcon, string]> = {
  pending: [CircleDashed, "text-muted"],
  queued: [Clock, "text-warn"],
  offered: [HandHelping, "text-warn"],
  running: [Play, "text-accent"],
  unreachable: [WifiOff, "text-bad"],
  completed: [CircleCheck, "text-good"],
  failed: [CircleAlert, "text-bad"],
  cancelled: [Ban, "text-muted"],
}

/** Every transition of a job with its cause, oldest first; a line for each new attempt. */
export function Timeline({ path }: { path: string }) {
  const events = useOne<{ items: EventOut[] }>(`${path}/events`)
  const workers = useList<WorkerOut>("/workers").data?.items ?? []
  const names = new Map(workers.map((worker) => [worker.id, worker.name]))
  return (
    <Loaded query={events}>
      {({ items }) => (
        <ol className="card max-w-4xl px-4 py-3">
          {items.map((event, index) => (
            <Line
              key={event.id}
              event={event}
              before={items[index - 1]}
              worker={event.worker_id === null ? null : (names.get(event.worker_id) ?? null)}
              isLast={index === items.length - 1}
            />
          ))}
        </ol>
      )}
    </Loaded>
  )
}

interface LineProps {
  event: EventOut
  before: EventOut | undefined
  worker: string | null
  isLast: boolean
}

function Line({ event, before, worker, isLast }: LineProps) {
  const { t, phrase, format } = useWords()
  const [Icon, tone] = MARKS[event.status] ?? [CircleDashed, "text-muted"]
  const isNewAttempt = event.attempt > 1 && event.attempt !== before?.attempt
  const passed = before ? (Date.parse(event.at) - Date.parse(before.at)) / 1000 : null
  return (
    <>
      {isNewAttempt && (
        <li className="flex items-center gap-3 py-1 text-xs font-medium text-muted">
          <span className="h-px flex-1 bg-line" />
          {t("training.attempt", { attempt: event.attempt })}
          <span className="h-px flex-1 bg-line" />
        </li>
      )}
      <li className="flex gap-3 text-sm">
        <span className={`flex flex-col items-center ${tone}`}>
          <span className="mt-1.5 inline-flex">
            <Icon size={17} aria-hidden />
          </span>
          {!isLast && <span className="my-1 w-px flex-1 bg-line-strong" />}
        </span>
        <div className="flex min-w-0 flex-1 flex-wrap items-baseline gap-x-4 gap-y-0.5 py-1.5">
          <span className="w-28 shrink-0 font-medium">{stateWord(event.status, t)}</span>
          <span className="min-w-0 flex-1 max-sm:basis-full">
            <Cause text={phrase(event.cause)} worker={worker} to={`/workers?worker=${event.worker_id}`} />
          </span>
          {passed !== null && passed >= 1 && <span className="num text-xs text-muted">{t("timeline.after", { time: format.duration(passed) })}</span>}
          <span className="text-muted">
            <Moment time={event.at} />
          </span>
        </div>
      </li>
    </>
  )
}

/** The machine is a link where the sentence names it, else after the sentence. */
function Cause({ text, worker, to }: { text: string; worker: string | null; to: string }) {
  if (!worker) return <>{text}</>
  const link = (
    <Link to={to} className="text-accent underline">
      {worker}
    </Link>
  )
  const at = text.indexOf(worker)
  if (at < 0) {
    return (
      <>
        {text} {link}
      </>
    )
  }
  return (
    <>
      {text.slice(0, at)}
      {link}
      {text.slice(at + worker.length)}
    </>
  )
}

function stateWord(status: string, t: (key: Key) => string): string {
  if (status === "unreachable") return t("timeline.unreachable")
  return isState(status) ? t(`state.${status}`) : status
}
