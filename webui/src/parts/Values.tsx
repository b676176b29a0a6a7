import { useSyncExternalStore, type ReactNode } from "react"
import { useWords } from "~/i18n"

let now = Date.now()
const clockWatchers = new Set<() => void>()
let clock: ReturnType<typeof setInterval> | undefined

function watchClock(callback: () => void): () => void {
  clockWatchers.add(callback)
  clock ??= setInterval(() => {
    now = Date.now()
    for (const watcher of clockWatchers) watcher()
  }, 5000)
  return () => {
    clockWatchers.delete(callback)
    if (clockWatchers.size > 0) return
    clearInterval(clock)
    clock = undefined
  }
}

/** "3 minutes ago", exact on hover; all of a page tick together. */
export function Ago({ time, short = false }: { time: string | null | undefined; short?: boolean }) {
  const { format } = useWords()
  useSyncExternalStore(watchClock, () => now)
  if (!time) return <span className="text-muted">–</span>
  return (
    <time dateTime={time} title={format.dateTime(time)} className="num whitespace-nowrap">
      {format.relative(time, Math.max(Date.now(), Date.parse(time) + 1000), short)}
    </time>
  )
}

/** Clock time, after the date where that is not today; how long ago on hover. */
export function Moment({ time }: { time: string }) {
  const { format } = useWords()
  useSyncExternalStore(watchClock, () => now)
  return (
    <time dateTime={time} title={format.relative(time)} className="num whitespace-nowrap">
      {format.moment(time)}
    </time>
  )
}

/** A moment still to come, e.g. when a key expires. */
export function Until({ time, never }: { time: string | null | undefined; never: string }) {
  const { format } = useWords()
  if (!time) return <>{never}</>
  return <time dateTime={time} title={format.dateTime(time)}>{format.relative(time)}</time>
}

export function Bytes({ value }: { value: number | null | undefined }) {
  const { format, t } = useWords()
  const exact = typeof value === "number" ? t("common.exact_bytes", { count: value }) : undefined
  return (
    <span className="num whitespace-nowrap" title={exact}>
      {format.bytes(value)}
    </span>
  )
}

/** A count, shortened from 100 000 on, exact on hover. */
export function Count({ value }: { value: number | null | undefined }) {
  const { format } = useWords()
  const long = typeof value === "number" && value >= 100_000
  return (
    <span className="num whitespace-nowrap" title={long ? format.number(value) : undefined}>
      {long ? format.compact(value) : format.number(value)}
    </span>
  )
}

/** Names and values of one thing, in two columns. */
export function Facts({ items }: { items: [name: string, value: ReactNode][] }) {
  return (
    <dl className="grid grid-cols-[minmax(7rem,auto)_minmax(0,1fr)] gap-x-4 gap-y-1.5 text-sm">
      {items.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-muted">{name}</dt>
          <dd className="min-w-0 break-words">{value ?? "–"}</dd>
        </div>
      ))}
    </dl>
  )
}

/** One figure with its name; `hint` says what it is made of. */
export function Figure({ name, value, hint }: { name: string; value: ReactNode; hint?: ReactNode }) {
  return (
    <div className="card min-w-0 px-4 py-3">
      <div className="text-sm text-muted">{name}</div>
      <div className="num mt-0.5 text-xl font-semibold">{value}</div>
      {hint && <div className="num text-xs text-muted">{hint}</div>}
    </div>
  )
}
