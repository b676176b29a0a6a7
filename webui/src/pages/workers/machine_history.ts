import { useEffect, useMemo, useState } from "react"
import { useOne, type Page } from "~/api/queries"
import type { WorkerMetrics, WorkerOut } from "~/api/types.gen"
import type { Point } from "~/parts/series"

/** What is kept of what arrives while one looks: at one point every five seconds, almost three hours. */
const MOST_LIVE = 2000
/** A silence longer than this, and than so many usual distances, is drawn as a gap. */
const GAP_SECONDS = 120
const GAP_DISTANCES = 8

/** What a machine measured of itself in the last `seconds`, stored and live, oldest first. */
export function useMachineHistory(worker: WorkerOut, seconds: number): { items: WorkerMetrics[]; error: unknown; isReady: boolean } {
  const since = useMemo(() => Math.floor(Date.now() / 1000 - seconds), [seconds])
  const stored = useOne<Page<WorkerMetrics>>(`/workers/${worker.id}/metrics`, { since })
  const live = useLive(worker)
  const items = useMemo(() => {
    const known = stored.data?.items ?? []
    const last = timeOf(known[known.length - 1])
    return [...known, ...live.filter((one) => timeOf(one) > last)]
  }, [stored.data, live])
  return { items, error: stored.error, isReady: stored.data !== undefined }
}

function useLive({ metrics, status }: WorkerOut): WorkerMetrics[] {
  const [live, setLive] = useState<WorkerMetrics[]>([])
  useEffect(() => {
    if (!metrics?.at || status === "offline") return
    setLive((known) => (known[known.length - 1]?.at === metrics.at ? known : [...known.slice(-MOST_LIVE), metrics]))
  }, [metrics, status])
  return live
}

function timeOf(metrics: WorkerMetrics | undefined): number {
  return metrics?.at ? Date.parse(metrics.at) / 1000 : 0
}

/** One of the figures as a series, with a gap where the machine was silent for long. */
export function pointsOf(items: readonly WorkerMetrics[], value: (metrics: WorkerMetrics) => number | null | undefined): Point[] {
  const points: Point[] = []
  const gap = Math.max(GAP_SECONDS, GAP_DISTANCES * usualDistance(items))
  for (const [step, one] of items.entries()) {
    const at = timeOf(one)
    const before = points[points.length - 1]?.[1]
    if (before !== undefined && at - before > gap) points.push([step, before + 1, null])
    points.push([step, at, value(one) ?? null])
  }
  return points.some((point) => point[2] !== null) ? points : []
}

/** The median of the distances: a long time is fetched thinned, and its points lie further apart. */
function usualDistance(items: readonly WorkerMetrics[]): number {
  const distances = items.slice(1).map((one, index) => timeOf(one) - timeOf(items[index]))
  return distances.sort((a, b) => a - b)[distances.length >> 1] ?? 0
}
