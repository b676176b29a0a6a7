import { useCallback, useEffect, useRef, useState } from "react"
import { get } from "~/api/http"
import { useTopic } from "~/api/live"
import { storeFresh, useRefresh } from "~/api/queries"
import type { JobOut, LogEntry, LogsOut, MetricsOut, ProgressOut, TrainingJobOut } from "~/api/types.gen"
import { mergePoints, type Point } from "~/parts/series"

export type SeriesByName = Record<string, Point[]>

export interface JobStream {
  series: SeriesByName
  lines: LogEntry[]
  progress: ProgressOut | null
  /** Whether what the hub has stored is here. */
  isLoaded: boolean
}

interface LivePoint {
  step: number
  at: number
  values: Record<string, number>
}

/** Redraws at most this often, however fast metrics arrive; long runs, whose end moves little, less often. */
const DRAW_EVERY = 200
const MILLISECONDS_A_POINT = 1 / 40

/** Metrics and log of one job: what is stored, then what arrives; after a reconnect the gap is fetched. */
export function useJobStream(id: string): JobStream {
  const series = useRef<SeriesByName>({})
  const lines = useRef<LogEntry[]>([])
  const progress = useRef<ProgressOut | null>(null)
  const isLoaded = useRef(false)
  const nextLog = useRef(0)
  const [shown, setShown] = useState<JobStream>({ series: {}, lines: [], progress: null, isLoaded: false })
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  const refresh = useRefresh()

  const draw = useCallback(() => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined
      setShown({ series: { ...series.current }, lines: lines.current, progress: progress.current, isLoaded: isLoaded.current })
    }, DRAW_EVERY + MILLISECONDS_A_POINT * longest(series.current))
  }, [])

  const addPoints = useCallback(
    (fresh: SeriesByName) => {
      for (const [name, points] of Object.entries(fresh)) series.current[name] = mergePoints(series.current[name] ?? [], points)
      draw()
    },
    [draw],
  )

  const addLines = useCallback(
    (fresh: LogEntry[]) => {
      lines.current = mergeLines(lines.current, fresh)
      draw()
    },
    [draw],
  )

  const catchUp = useCallback(async () => {
    const lastStep = Math.max(0, ...Object.values(series.current).map((points) => points[points.length - 1]?.[0] ?? 0))
    const [metrics] = await Promise.all([
      get<MetricsOut>(`/training-jobs/${id}/metrics`, { since_step: lastStep || undefined }),
      fetchLogs(id, nextLog, addLines),
    ])
    isLoaded.current = true
    addPoints(metrics.series)
  }, [id, addPoints, addLines])

  useEffect(() => {
    series.current = {}
    lines.current = []
    nextLog.current = 0
    progress.current = null
    isLoaded.current = false
    draw()
    // A failure here shows on the page through the job's own query.
    catchUp().catch(() => undefined)
    return () => {
      clearTimeout(timer.current)
      timer.current = undefined
    }
  }, [catchUp, draw])

  useTopic(`job:${id}`, ({ type, data }) => {
    if (type === "job.metrics") addPoints(byName(data.points as LivePoint[]))
    else if (type === "job.log") addLines(data.items as LogEntry[])
    else if (type === "job.sample") refresh("training-jobs", id, "samples")
    else if (type === "job.checkpoint") refresh("training-jobs", id, "checkpoints")
    else if (type === "job.progress") {
      progress.current = data as unknown as ProgressOut
      draw()
    } else if (type === "job.state") {
      storeFresh("training-jobs", data as unknown as TrainingJobOut)
      refresh("training-jobs", id, "events")
    } else if (type === "snapshot") {
      const job = data.job as JobOut | undefined
      if (job) storeFresh("training-jobs", job)
      catchUp().catch(() => undefined)
    }
  })
  return shown
}

function longest(series: SeriesByName): number {
  return Math.max(0, ...Object.values(series).map((points) => points.length))
}

/** Page by page until the hub has no more; `next` moves along. */
async function fetchLogs(id: string, next: { current: number }, add: (lines: LogEntry[]) => void): Promise<void> {
  for (;;) {
    const page = await get<LogsOut>(`/training-jobs/${id}/logs`, { since: next.current })
    add(page.items)
    if (page.items.length === 0 || page.next <= next.current) return
    next.current = page.next
  }
}

function byName(points: LivePoint[]): SeriesByName {
  const result: Record<string, Point[]> = {}
  for (const { step, at, values } of points) {
    for (const [name, value] of Object.entries(values)) (result[name] ??= []).push([step, at, value])
  }
  return result
}

/** Lines by id, each once, in order. */
export function mergeLines(known: LogEntry[], fresh: LogEntry[]): LogEntry[] {
  const last = known[known.length - 1]?.id ?? -1
  const added = fresh.filter(({ id }) => id > last)
  if (added.length === fresh.length) return [...known, ...added]
  const byId = new Map(known.map((line) => [line.id, line]))
  for (const line of fresh) byId.set(line.id, line)
  return [...byId.values()].sort((a, b) => a.id - b.id)
}
