import { useMemo, useState } from "react"
import type { WorkerMetrics, WorkerOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { ErrorNote } from "~/parts/ErrorNote"
import { Segmented } from "~/parts/Field"
import { LineChart } from "~/parts/LineChart"
import { pointsOf, useMachineHistory } from "./machine_history"

const HOUR = 3600
const RANGES = [1, 6, 24]
const PERCENT = [0, 100] as const
const VALUES = {
  gpu: (metrics: WorkerMetrics) => metrics.gpu_utilization,
  vram: (metrics: WorkerMetrics) => metrics.vram_used,
  cpu: (metrics: WorkerMetrics) => metrics.cpu,
  ram: (metrics: WorkerMetrics) => metrics.ram,
}

/** Use of GPU, GPU memory, processor and memory over the last hours, going on live. */
export function MachineCharts({ worker }: { worker: WorkerOut }) {
  const { t, format } = useWords()
  const [hours, setHours] = useState(1)
  const { items, error, isReady } = useMachineHistory(worker, hours * HOUR)
  const { hardware } = worker
  const shown = hardware?.gpu ? (["gpu", "vram", "cpu", "ram"] as const) : (["cpu", "ram"] as const)
  const series = useMemo(
    () => new Map(shown.map((name) => [name, [{ label: name, colour: "--c-series-1", points: pointsOf(items, VALUES[name]) }]])),
    [items, shown.length],
  )
  const titles = { gpu: t("workers.gpu_use"), vram: t("workers.vram"), cpu: t("workers.cpu_use"), ram: t("workers.ram") }
  const totals = { vram: hardware?.vram_total, ram: hardware?.ram }
  if (error && !isReady) return <ErrorNote error={error} />
  return (
    <>
      <div className="mb-2 -mt-9 flex justify-end">
        <Segmented
          label={t("workers.range")}
          value={String(hours)}
          onChange={(value) => setHours(Number(value))}
          options={RANGES.map((count) => ({ value: String(count), label: format.duration(count * HOUR) }))}
        />
      </div>
      <div className="grid gap-3 sm:grid-cols-2">
        {shown.map((name) => {
          const total = name === "vram" || name === "ram" ? totals[name] : undefined
          const isPercent = name === "gpu" || name === "cpu"
          return (
            <LineChart
              key={name}
              title={titles[name]}
              series={series.get(name) ?? []}
              axis="clock"
              group={`worker-${worker.id}`}
              bounds={isPercent ? PERCENT : boundsOf(total)}
              format={isPercent ? (value) => format.percent(value / 100) : (value) => format.bytes(value)}
              height={130}
              plain
            />
          )
        })}
      </div>
    </>
  )
}

const knownBounds = new Map<number, readonly [number, number]>()

/** The same pair for the same total: a chart is drawn anew when its bounds change. */
function boundsOf(total: number | null | undefined): readonly [number, number] | undefined {
  if (!total) return undefined
  const bounds = knownBounds.get(total) ?? ([0, total] as const)
  knownBounds.set(total, bounds)
  return bounds
}
