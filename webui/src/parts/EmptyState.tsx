import type { LucideIcon } from "lucide-react"
import type { ReactNode } from "react"

/** What this is, why one wants it, and the one thing to do. */
export function EmptyState(props: { icon: LucideIcon; title: string; text: ReactNode; action?: ReactNode }) {
  const Icon = props.icon
  return (
    <div className="card flex flex-col items-center px-6 py-12 text-center">
      <span className="mb-3 inline-flex size-12 items-center justify-center rounded-full bg-accent-soft text-accent">
        <Icon size={22} aria-hidden />
      </span>
      <h2 className="font-semibold">{props.title}</h2>
      <div className="mt-1 max-w-md text-sm text-muted">{props.text}</div>
      {props.action && <div className="mt-4 flex flex-wrap justify-center gap-2">{props.action}</div>}
    </div>
  )
}
