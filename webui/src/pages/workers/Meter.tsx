/** A share as a short bar with its figure. */
export function Meter({ label, share, text }: { label: string; share: number | null; text: string }) {
  if (share === null) return <span className="text-muted">–</span>
  return (
    <span className="flex items-center gap-2">
      <span role="img" aria-label={`${label}: ${text}`} className="h-1.5 w-16 shrink-0 overflow-hidden rounded-full bg-sunken">
        <span className="block h-full bg-accent" style={{ width: `${Math.min(100, share * 100)}%` }} />
      </span>
      <span className="num whitespace-nowrap text-muted">{text}</span>
    </span>
  )
}
