/** A point of a metric: step (from 1), time in seconds since the epoch, value. */
export type Point = readonly [step: number, time: number, value: number | null]

export interface Series {
  label: string
  colour: string
  points: readonly Point[]
}

/** `time` is since the first point, `clock` is the time of day. */
export type Axis = "step" | "time" | "clock"

/** One x and y column of a series; seconds since `start` on the time axis, since the epoch on the clock's. A missing value stays a gap. */
export function columnsOf(points: readonly Point[], axis: Axis, start: number): [number[], (number | null)[]] {
  const xs = new Array<number>(points.length)
  const ys = new Array<number | null>(points.length)
  points.forEach((point, index) => {
    xs[index] = axis === "step" ? point[0] : axis === "time" ? point[1] - start : point[1]
    ys[index] = point[2]
  })
  return [xs, ys]
}

/** Exponential moving average, weight 0 (as measured) to below 1; starts unbiased and begins anew after a gap. */
export function smooth(values: readonly (number | null)[], weight: number): (number | null)[] {
  if (weight <= 0) return [...values]
  let mean = 0
  let mass = 0
  return values.map((value) => {
    if (value === null) {
      mean = mass = 0
      return null
    }
    mean = mean * weight + value * (1 - weight)
    mass = mass * weight + (1 - weight)
    return mean / mass
  })
}

/** Index of the smallest value, or null where there is none; series put on one axis have holes that are undefined. */
export function lowest(values: readonly (number | null | undefined)[]): number | null {
  let best: number | null = null
  values.forEach((value, index) => {
    if (typeof value === "number" && (best === null || value < values[best]!)) best = index
  })
  return best
}

/** Appends points by step; a step that is there already (after a resume or a repeated message) is replaced. */
export function mergePoints(known: readonly Point[], fresh: readonly Point[]): Point[] {
  if (fresh.length === 0) return [...known]
  const last = known[known.length - 1]
  if (!last || fresh[0]![0] > last[0]) return isSorted(fresh) ? [...known, ...fresh] : mergeUnsorted(known, fresh)
  return mergeUnsorted(known, fresh)
}

function isSorted(points: readonly Point[]): boolean {
  return points.every((point, index) => index === 0 || points[index - 1]![0] < point[0])
}

function mergeUnsorted(known: readonly Point[], fresh: readonly Point[]): Point[] {
  const byStep = new Map(known.map((point) => [point[0], point]))
  for (const point of fresh) byStep.set(point[0], point)
  return [...byStep.values()].sort((a, b) => a[0] - b[0])
}

export function toCsv(series: readonly Series[]): string {
  const rows = series.flatMap(({ label, points }) =>
    points.map(([step, time, value]) => `${label},${step},${new Date(time * 1000).toISOString()},${value ?? ""}`),
  )
  return ["name,step,time,value", ...rows].join("\n") + "\n"
}
