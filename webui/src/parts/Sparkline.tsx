/** The shape of a series, without axes; the last value stands beside it in words. */
export function Sparkline({ values, label }: { values: (number | null)[]; label: string }) {
  const known = values.filter((value): value is number => value !== null)
  if (known.length < 2) return <div className="h-9" />
  const low = Math.min(...known)
  const span = Math.max(...known) - low || 1
  const path = values.map((value, index) => point(value, index, values.length, low, span)).join(" ")
  return (
    <svg viewBox="0 0 100 36" preserveAspectRatio="none" className="h-9 w-full" role="img" aria-label={label}>
      <polyline points={path} fill="none" stroke="var(--c-series-1)" strokeWidth="1.5" vectorEffect="non-scaling-stroke" />
    </svg>
  )
}

function point(value: number | null, index: number, count: number, low: number, span: number): string {
  if (value === null) return ""
  return `${((index / (count - 1)) * 100).toFixed(2)},${(33 - ((value - low) / span) * 30).toFixed(2)}`
}
