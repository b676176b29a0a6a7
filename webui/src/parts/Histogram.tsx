import { useWords } from "~/i18n"

export interface Bin {
  from: number
  to: number
  count: number
}

interface Props {
  label: string
  bins: Bin[]
  /** Vertical lines with a name, e.g. p95. */
  marks?: { at: number; label: string }[]
}

const HEIGHT = 100

/** Bars stretch with the page; the words beside them keep their size. */
export function Histogram({ label, bins, marks = [] }: Props) {
  const { format, t } = useWords()
  const first = bins[0]
  const last = bins[bins.length - 1]
  if (!first || !last) return null
  const highest = Math.max(1, ...bins.map((bin) => bin.count))
  const span = last.to - first.from || 1
  const x = (value: number) => ((value - first.from) / span) * 100
  const shownMarks = marks.filter(({ at }) => at >= first.from && at <= last.to)
  return (
    <figure className="num text-xs text-muted" role="img" aria-label={label}>
      <div className="relative h-5">
        {shownMarks.map((mark, index) => (
          <span
            key={mark.label}
            className={`absolute whitespace-nowrap ${index > 0 ? "pl-1" : "-translate-x-full pr-1"}`}
            // Room for the words on both sides, wherever the line is.
            style={{ left: `clamp(4.5rem, ${x(mark.at)}%, 100% - 4.5rem)` }}
          >
            {mark.label}
          </span>
        ))}
      </div>
      <svg viewBox={`0 0 100 ${HEIGHT}`} preserveAspectRatio="none" className="h-44 w-full border-b border-line-strong">
        {bins.map((bin) => {
          const height = bin.count === 0 ? 0 : Math.max(1, (bin.count / highest) * HEIGHT)
          const width = x(bin.to) - x(bin.from)
          return (
            <rect key={bin.from} x={x(bin.from) + width * 0.03} y={HEIGHT - height} width={width * 0.94} height={height} fill="var(--c-series-1)">
              <title>{t("chart.bin", { from: format.number(bin.from), to: format.number(bin.to), count: bin.count })}</title>
            </rect>
          )
        })}
        {shownMarks.map((mark) => (
          <line
            key={mark.label}
            x1={x(mark.at)}
            x2={x(mark.at)}
            y1={0}
            y2={HEIGHT}
            stroke="var(--c-series-2)"
            strokeWidth="1.5"
            strokeDasharray="4 3"
            vectorEffect="non-scaling-stroke"
          />
        ))}
      </svg>
      <div className="mt-1 flex justify-between">
        <span>{format.number(first.from)}</span>
        <span>{format.number(last.to)}</span>
      </div>
    </figure>
  )
}
