import type { ReactNode } from "react"
import { useWords } from "~/i18n"

interface Props {
  label: string
  /** 0 to 1; missing while the total is not known. */
  fraction: number | null | undefined
  phase?: string | undefined
  /** Done of total, rate, and what else belongs beside the bar. */
  facts?: (string | null | undefined)[]
  etaSeconds?: number | null | undefined
  actions?: ReactNode
}

export function Progress({ label, fraction, phase, facts = [], etaSeconds, actions }: Props) {
  const { t, format } = useWords()
  const known = typeof fraction === "number"
  const percent = known ? Math.min(100, Math.max(0, fraction * 100)) : 0
  const eta = typeof etaSeconds === "number" ? t("progress.eta", { time: format.duration(etaSeconds) }) : null
  const shown = [...facts, eta].filter(Boolean)
  return (
    <div>
      <div className="mb-1 flex items-baseline justify-between gap-3 text-sm">
        <span className="min-w-0 truncate font-medium">{phase ?? label}</span>
        <span className="num shrink-0 text-muted">{known ? format.percent(fraction, percent < 10 ? 1 : 0) : ""}</span>
      </div>
      <div
        role="progressbar"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        {...(known && { "aria-valuenow": Math.round(percent) })}
        className="h-2 overflow-hidden rounded-full bg-sunken"
      >
        <div
          className={`h-full rounded-full bg-accent transition-[width] duration-300 ${known ? "" : "skeleton w-full opacity-60"}`}
          style={known ? { width: `${percent}%` } : undefined}
        />
      </div>
      {(shown.length > 0 || actions) && (
        <div className="mt-1.5 flex flex-wrap items-center justify-between gap-2">
          <span className="num text-sm text-muted">{shown.join(" · ")}</span>
          {actions && <div className="flex gap-1.5">{actions}</div>}
        </div>
      )}
    </div>
  )
}
