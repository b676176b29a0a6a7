import { useEffect, useState } from "react"
import type { PhaseEvent } from "~/api/types.gen"
import { useWords } from "~/i18n"

/** Says what happens before the first token, instead of spinning. */
export function Waiting({ phase }: { phase: PhaseEvent | null }) {
  const { t, format } = useWords()
  const seconds = useSeconds(phase?.phase ?? "waiting")
  const name = phase?.phase ?? "waiting"
  // What it took the last time; once that is over, how long it has taken.
  const about = phase?.about_seconds
  const expected = about && about >= 1 && seconds < about ? Math.ceil(about) : null
  const share = phase?.done != null && phase.total ? phase.done / phase.total : null
  return (
    <div role="status" className="max-w-md py-1 text-sm text-muted">
      <p className="num">
        {t(`chat.phase_${name}`, { worker: phase?.worker_name ?? "" }).trim()}
        {expected ? `, ${t("chat.about", { time: format.duration(expected) })}` : seconds >= 2 && ` (${format.duration(seconds)})`}
      </p>
      {share !== null && (
        <div className="mt-1 h-1.5 overflow-hidden rounded-full bg-sunken">
          <div className="h-full bg-accent" style={{ width: `${share * 100}%` }} />
        </div>
      )}
    </div>
  )
}

/** Whole seconds since the phase began. */
function useSeconds(phase: string): number {
  const [seconds, setSeconds] = useState(0)
  useEffect(() => {
    const start = Date.now()
    setSeconds(0)
    const timer = setInterval(() => setSeconds(Math.floor((Date.now() - start) / 1000)), 1000)
    return () => clearInterval(timer)
  }, [phase])
  return seconds
}
