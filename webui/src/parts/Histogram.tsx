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

const WIDTH = 600
const HEIGHT = 150
const BASE = HEIGHT - 22

export function Histogram({ label, bins, marks = [] }: Props) {
  const { format, t } = useWords()
  const first = bins[0]
  const last = bins[bins.length - 1]
  if (!first || !last) return null
  const highest = Math.max(1, ...bins.map((bin) => bin.count))
  const span = last.to - first.from || 1
  const x = (value: number) => ((value - first.from) / span) * WIDTH
  return (
    <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} className="num w-full" role="img" aria-label={label}>
      {bins.map((bin) => {
        const height = bin.count === 0 ? 0 : Math.max(1.5, (bin.count / highest) * (BASE - 18))
        return (
          <rect
            key={bin.from}
            x={x(bin.from) + 0.75}
            y={BASE - height}
            width={Math.max(1, x(bin.to) - x(bin.from) - 1.5)}
            height={height}
            fill="var(--c-series-1)"
          >
            <title>
              {t("chart.bin", { from: format.number(bin.from), to: format.number(bin.to), count: bin.count })}
            </title>
          </rect>
        )
      })}
      <line x1={0} x2={WIDTH} y1={BASE} y2={BASE} stroke="var(--c-line-strong)" />
      {marks
        .filter(({ at }) => at >= first.from && at <= last.to)
        .map((mark) => (
          <g key={mark.label}>
            <line x1={x(mark.at)} x2={x(mark.at)} y1={12} y2={BASE} stroke="var(--c-series-2)" strokeDasharray="3 3" />
            <text x={x(mark.at)} y={9} fontSize="11" textAnchor={x(mark.at) > WIDTH - 60 ? "end" : "middle"} fill="var(--c-muted)">
              {mark.label}
            </text>
          </g>
        ))}
      <text x={0} y={HEIGHT - 6} fontSize="11" fill="var(--c-muted)">
        {format.number(first.from)}
      </text>
      <text x={WIDTH} y={HEIGHT - 6} fontSize="11" textAnchor="end" fill="var(--c-muted)">
        {format.number(last.to)}
      </text>
    </svg>
  )
}
