import { useMemo, useState } from "react"
import { useWords, type Key } from "~/i18n"
import { Segmented, Switch } from "~/parts/Field"
import { LineChart } from "~/parts/LineChart"
import type { Axis, Series } from "~/parts/series"
import type { SeriesByName } from "./job_stream"

interface Panel {
  title: Key
  names: string[]
  unit?: "percent" | "bytes"
  markLowest?: string
}

const PANELS: Panel[] = [
  { title: "charts.loss", names: ["loss", "eval_loss"], markLowest: "eval_loss" },
  { title: "charts.learning_rate", names: ["learning_rate"] },
  { title: "charts.grad_norm", names: ["grad_norm"] },
  { title: "charts.tokens_per_second", names: ["tokens_per_second"] },
  { title: "charts.device", names: ["gpu_utilization", "cpu", "cpu_utilization"], unit: "percent" },
  { title: "charts.memory", names: ["vram_used", "gpu_memory", "ram_used", "memory_used", "memory"], unit: "bytes" },
]
const COLOURS = ["--c-series-1", "--c-series-2", "--c-series-3", "--c-series-4"]
const PERCENT = [0, 100] as const
const KNOWN = new Set(PANELS.flatMap(({ names }) => names))
/** Of no use as a curve of their own. */
const LEFT_OUT = new Set(["epoch", "step", "total_steps"])

export function Charts({ series }: { series: SeriesByName }) {
  const { t, format } = useWords()
  const [axis, setAxis] = useState<Axis>("step")
  const [smoothing, setSmoothing] = useState(0)
  const [log, setLog] = useState(false)
  const panels = useMemo(() => panelsOf(series), [series])
  const seriesWords = { loss: t("charts.loss_train"), eval_loss: t("charts.loss_validation") } as Record<string, string>
  const drawn = useMemo(() => panels.map(({ names }) => names.map((name, index) => seriesOf(name, series, index))), [panels, series])
  const formatter = (unit: Panel["unit"]) =>
    unit === "bytes" ? (value: number) => format.bytes(value) : unit === "percent" ? (value: number) => format.percent(value / 100) : undefined
  return (
    <div>
      <div className="mb-3 flex flex-wrap items-center gap-x-5 gap-y-2 text-sm">
        <Segmented<Axis>
          label={t("charts.axis")}
          value={axis}
          onChange={setAxis}
          options={[
            { value: "step", label: t("charts.step") },
            { value: "time", label: t("charts.time") },
          ]}
        />
        <label className="flex items-center gap-2">
          {t("charts.smoothing")}
          <input type="range" min={0} max={0.98} step={0.02} value={smoothing} onChange={(event) => setSmoothing(Number(event.target.value))} className="w-28 accent-[var(--c-accent)]" />
          <span className="num w-9 text-muted">{format.number(smoothing, 2)}</span>
        </label>
        <span className="flex items-center gap-2">
          <Switch checked={log} onChange={setLog} label={t("charts.log")} /> <span aria-hidden>{t("charts.log")}</span>
        </span>
        <span className="text-muted max-md:hidden">{t("charts.hint")}</span>
      </div>
      <div className="grid gap-3 xl:grid-cols-2">
        {panels.map((panel, index) => (
          <LineChart
            key={panel.key}
            title={panel.title ? t(panel.title) : panel.key}
            series={drawn[index]!.map((one) => ({ ...one, label: seriesWords[one.label] ?? one.label }))}
            axis={axis}
            smoothing={smoothing}
            log={log && panel.title === "charts.loss"}
            group="job"
            {...(panel.markLowest && { markLowest: seriesWords[panel.markLowest] ?? panel.markLowest })}
            {...(formatter(panel.unit) && { format: formatter(panel.unit)! })}
            bounds={panel.unit === "percent" ? PERCENT : undefined}
            height={index < 2 ? 220 : 180}
          />
        ))}
      </div>
    </div>
  )
}

interface DrawnPanel {
  key: string
  title?: Key
  names: string[]
  unit?: Panel["unit"]
  markLowest?: string
}

/** The panels that everyone looks for, and one for each other metric that a trainer reports. */
function panelsOf(series: SeriesByName): DrawnPanel[] {
  const present = (names: string[]) => names.filter((name) => (series[name]?.length ?? 0) > 0)
  const known = PANELS.map((panel, index): DrawnPanel => ({ ...panel, key: panel.title, names: index < 2 && present(panel.names).length === 0 ? panel.names.slice(0, 1) : present(panel.names) }))
  const others = Object.keys(series).filter((name) => !KNOWN.has(name) && !LEFT_OUT.has(name) && present([name]).length > 0)
  return [...known.filter(({ names }) => names.length > 0), ...others.sort().map((name): DrawnPanel => ({ key: name, names: [name] }))]
}

function seriesOf(name: string, series: SeriesByName, index: number): Series {
  return { label: name, colour: COLOURS[index % COLOURS.length]!, points: series[name] ?? [] }
}
