interface Props {
  label: string
  /** 0 to 1. */
  share: number | undefined
  text: string
  /** More of it, on hover. */
  title?: string
  /** Being full is worth a second look, as it is of memory. */
  warns?: boolean
}

const FULL = 0.95

/** A share as a short bar with its figure. */
export function Meter({ label, share, text, title, warns = false }: Props) {
  if (share === undefined) return <span className="text-muted">–</span>
  return (
    <span className="flex items-center gap-2" title={title}>
      <span role="img" aria-label={`${label}: ${title ?? text}`} className="h-1.5 w-10 shrink-0 overflow-hidden rounded-full bg-sunken">
        <span className={`block h-full ${warns && share >= FULL ? "bg-warn" : "bg-accent"}`} style={{ width: `${Math.min(100, share * 100)}%` }} />
      </span>
      <span aria-hidden className="num whitespace-nowrap text-muted">
        {text}
      </span>
    </span>
  )
}
