import { useEffect, useState } from "react"
import { useConnection } from "~/api/live"
import { dashboard } from "~/api/socket"
import { useWords } from "~/i18n"

/** Whether what is shown follows the hub as it happens; a click tries again at once. `always` keeps the word on a phone. */
export function LiveDot({ always = false }: { always?: boolean }) {
  const { t } = useWords()
  const connection = useConnection()
  const seconds = useSecondsUntil(connection.state === "waiting" ? connection.until : null)
  const [tone, text] =
    connection.state === "online"
      ? ["bg-good live-dot", t("live.online")]
      : connection.state === "offline"
        ? ["bg-bad", t("live.offline")]
        : ["bg-warn live-dot", connection.state === "waiting" ? t("live.waiting", { seconds }) : t("live.connecting")]
  return (
    <button
      type="button"
      onClick={() => dashboard.retryNow()}
      className="flex items-center gap-2 rounded-md px-1.5 py-1 text-sm text-muted"
      aria-label={text}
      title={text}
    >
      <span className={`size-2.5 rounded-full ${tone}`} />
      <span className={`num ${always ? "" : "max-md:hidden"}`}>{text}</span>
    </button>
  )
}

function useSecondsUntil(moment: number | null): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    if (moment === null) return
    const timer = setInterval(() => setNow(Date.now()), 500)
    return () => clearInterval(timer)
  }, [moment])
  return moment === null ? 0 : Math.max(0, Math.ceil((moment - now) / 1000))
}
