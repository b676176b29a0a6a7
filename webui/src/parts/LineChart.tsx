import { Download, Image } from "lucide-react"
import { useEffect, useMemo, useRef } from "react"
import uPlot from "uplot"
import "uplot/dist/uPlot.min.css"
import { useWords } from "~/i18n"
import { onThemeChange, resolveColour } from "~/state/theme"
import { IconButton } from "./Button"
import { saveFile } from "./save"
import { columnsOf, lowest, smooth, toCsv, type Axis, type Series } from "./series"

interface Props {
  title: string
  series: Series[]
  axis: Axis
  smoothing?: number
  log?: boolean
  /** Charts of one group share the cursor. */
  group?: string
  /** Marks the lowest point of the series with this label. */
  markLowest?: string
  format?: (value: number) => string
  /** Bounds of the vertical axis where they are known, e.g. 0 to 100 for a percentage. */
  bounds?: readonly [number, number] | undefined
  height?: number
  /** Without the buttons that save the values and the picture. */
  plain?: boolean
}

export function LineChart(props: Props) {
  const { title, series, axis, smoothing = 0, log = false, group, markLowest, bounds, height = 200, plain = false } = props
  const { t, format } = useWords()
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const formatValue = props.format ?? ((value: number) => format.metric(value))
  const bestWord = t("checkpoints.best")
  const latestFormat = useRef(formatValue)
  useEffect(() => {
    latestFormat.current = formatValue
  })
  const data = useMemo(() => alignedData(series, axis, smoothing), [series, axis, smoothing])
  const names = series.map(({ label, colour }) => `${label}\u0000${colour}`).join("\u0001")

  useEffect(() => {
    const element = box.current
    if (!element) return
    const make = () => {
      plot.current?.destroy()
      const options = chartOptions({ names, axis, log, group, markLowest, bestWord, bounds, height, width: element.clientWidth || 300 }, (value) =>
        latestFormat.current(value),
      )
      plot.current = new uPlot(options, [[]], element)
    }
    make()
    const resize = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height }))
    resize.observe(element)
    const unwatch = onThemeChange(() => {
      const shown = plot.current?.data
      make()
      if (shown) plot.current?.setData(shown)
    })
    return () => {
      resize.disconnect()
      unwatch()
      plot.current?.destroy()
      plot.current = null
    }
  }, [names, axis, log, group, markLowest, bestWord, bounds, height])

  useEffect(() => {
    plot.current?.setData(data)
  }, [data, names, axis, log, group, markLowest, bestWord, bounds, height])

  const isEmpty = series.every(({ points }) => points.length === 0)
  const picture = () => box.current?.querySelector("canvas")?.toBlob((blob) => blob && saveFile(blob, `${title}.png`))
  return (
    <figure className="card relative min-w-0 p-3">
      <figcaption className="mb-1 flex flex-wrap items-center gap-x-3 text-sm">
        <span className="font-medium">{title}</span>
        {series.length > 1 &&
          series.map(({ label, colour }) => (
            <span key={label} className="flex items-center gap-1 text-xs text-muted">
              <span className="h-0.5 w-3 rounded" style={{ background: `var(${colour})` }} />
              {label}
            </span>
          ))}
        <span className="num ml-auto text-sm">{isEmpty ? "" : series.map((one) => lastValue(one, formatValue)).join(" · ")}</span>
        {!isEmpty && !plain && (
          <span className="-my-2 -mr-2 flex max-sm:hidden">
            <IconButton label={t("chart.csv")} onClick={() => saveFile(new Blob([toCsv(series)]), `${title}.csv`)}>
              <Download size={15} aria-hidden />
            </IconButton>
            <IconButton label={t("chart.png")} onClick={picture}>
              <Image size={15} aria-hidden />
            </IconButton>
          </span>
        )}
      </figcaption>
      <div ref={box} role="img" aria-label={title} style={{ height }} className="min-w-0 overflow-hidden" />
      {isEmpty && (
        <div className="absolute inset-0 flex items-center justify-center pt-6 text-sm text-muted">{t("chart.no_data")}</div>
      )}
    </figure>
  )
}

function lastValue({ points }: Series, format: (value: number) => string): string {
  const value = points[points.length - 1]?.[2]
  return typeof value === "number" ? format(value) : "–"
}

function alignedData(series: Series[], axis: Axis, smoothing: number): uPlot.AlignedData {
  const start = Math.min(...series.map(({ points }) => points[0]?.[1] ?? Infinity))
  const tables = series.map(({ points }): uPlot.AlignedData => {
    const [xs, ys] = columnsOf(points, axis, start)
    return [xs, smooth(ys, smoothing)]
  })
  if (tables.length === 1) return tables[0]!
  return uPlot.join(tables)
}

interface Shape {
  names: string
  axis: Axis
  log: boolean
  group: string | undefined
  markLowest: string | undefined
  bestWord: string
  bounds: readonly [number, number] | undefined
  height: number
  width: number
}

/** Steps are whole: no tick lies between two of them. */
const WHOLE_INCREMENTS = Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat()

function chartOptions(shape: Shape, format: (value: number) => string): uPlot.Options {
  const muted = resolveColour("--c-muted")
  const line = resolveColour("--c-line")
  const series = shape.names.split("\u0001").map((name) => name.split("\u0000") as [string, string])
  const grid = { stroke: line, width: 1 }
  const axis: uPlot.Axis = { stroke: muted, grid, ticks: { ...grid, size: 4 }, font: "11px system-ui", gap: 4 }
  return {
    width: shape.width,
    height: shape.height,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: {
      drag: { x: true, y: false },
      focus: { prox: 16 },
      ...(shape.group && { sync: { key: shape.group } }),
    },
    scales: { x: { time: shape.axis === "clock" }, y: { distr: shape.log ? 3 : 1, ...(shape.bounds && { range: [...shape.bounds] }) } },
    axes: [
      { ...axis, size: 24, space: 60, ...horizontal(shape.axis) },
      { ...axis, size: 56, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : format(tick))) },
    ],
    series: [
      {},
      ...series.map(([label, colour]): uPlot.Series => {
        const stroke = resolveColour(colour)
        return { label, stroke, width: 1.6, points: { show: (plot, index) => isSparse(plot, index), size: 5, fill: stroke } }
      }),
    ],
    plugins: [tooltip(shape.axis, format), ...(shape.markLowest ? [lowestMark(shape.markLowest, (value) => `${shape.bestWord} ${format(value)}`)] : [])],
  }
}

function horizontal(axis: Axis): uPlot.Axis {
  if (axis === "step") return { incrs: WHOLE_INCREMENTS }
  if (axis === "time") return { values: (_, ticks) => ticks.map(elapsed) }
  // Seconds only where ticks would read alike without.
  return { values: (_, ticks, __, ___, distance) => ticks.map((tick) => timeOfDay(tick).slice(0, distance < 60 ? 8 : 5)) }
}

const two = (value: number) => String(value).padStart(2, "0")

/** The wall clock of the reader: "14:05:30". */
function timeOfDay(seconds: number): string {
  const time = new Date(seconds * 1000)
  return [time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(":")
}

function elapsed(seconds: number): string {
  const hours = Math.floor(seconds / 3600)
  const minutes = Math.floor((seconds % 3600) / 60)
  const rest = Math.floor(seconds % 60)
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`
}

/** Few points are drawn as dots too, so that a single evaluation is seen at all. */
function isSparse(plot: uPlot, index: number): boolean {
  const values = plot.data[index]
  if (!values) return false
  let known = 0
  for (const value of values) if (typeof value === "number" && ++known > 60) return false
  return true
}

function tooltip(axis: Axis, format: (value: number) => string): uPlot.Plugin {
  const box = document.createElement("div")
  box.className =
    "pointer-events-none absolute z-10 hidden rounded-md border border-line bg-raised px-2 py-1 text-xs num shadow-pop whitespace-pre"
  return {
    hooks: {
      init: (plot) => void plot.over.append(box),
      setCursor: (plot) => {
        const { idx, left, top } = plot.cursor
        const rows = idx == null ? [] : tooltipRows(plot, idx, axis, format)
        box.classList.toggle("hidden", rows.length === 0 || (left ?? -1) < 0)
        if (rows.length === 0) return
        box.textContent = rows.join("\n")
        const isRight = (left ?? 0) > plot.over.clientWidth / 2
        box.style.left = isRight ? "" : `${(left ?? 0) + 10}px`
        box.style.right = isRight ? `${plot.over.clientWidth - (left ?? 0) + 10}px` : ""
        box.style.top = `${Math.max(0, (top ?? 0) - 10)}px`
      },
    },
  }
}

function tooltipRows(plot: uPlot, index: number, axis: Axis, format: (value: number) => string): string[] {
  const rows = plot.series.slice(1).flatMap((series, at) => {
    const value = plot.data[at + 1]?.[index]
    return typeof value === "number" ? [`${String(series.label)}  ${format(value)}`] : []
  })
  const x = plot.data[0][index]
  if (rows.length === 0 || x === undefined) return []
  if (axis === "clock") return [timeOfDay(x), ...rows]
  return [Number.isInteger(x) ? String(x) : x.toFixed(1), ...rows]
}

/** A ring around the lowest point of a series, and its value beside it. */
function lowestMark(label: string, words: (value: number) => string): uPlot.Plugin {
  return {
    hooks: {
      draw: (plot) => {
        const at = plot.series.findIndex((series) => series.label === label)
        const index = at > 0 ? lowest(plot.data[at] as (number | null | undefined)[]) : null
        if (index === null) return
        const x = plot.valToPos(plot.data[0][index]!, "x", true)
        const y = plot.valToPos(plot.data[at]![index]!, "y", true)
        plot.ctx.save()
        plot.ctx.strokeStyle = resolveColour("--c-ink")
        plot.ctx.lineWidth = 2 * devicePixelRatio
        plot.ctx.beginPath()
        plot.ctx.arc(x, y, 6 * devicePixelRatio, 0, 2 * Math.PI)
        plot.ctx.stroke()
        const { left, width, top } = plot.bbox
        plot.ctx.fillStyle = resolveColour("--c-ink")
        plot.ctx.font = `600 ${11 * devicePixelRatio}px system-ui`
        plot.ctx.textAlign = x > left + width / 2 ? "right" : "left"
        plot.ctx.textBaseline = "alphabetic"
        const isAtTop = y - top < 24 * devicePixelRatio
        plot.ctx.fillText(words(plot.data[at]![index]!), x, y + (isAtTop ? 20 : -11) * devicePixelRatio)
        plot.ctx.restore()
      },
    },
  }
}
