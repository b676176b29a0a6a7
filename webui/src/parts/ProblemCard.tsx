import { CircleAlert } from "lucide-react"
import type { ReactNode } from "react"
import { useWords } from "~/i18n"

interface Props {
  title: string
  message: ReactNode
  /** The line of the log that says so. */
  line?: string | null | undefined
  advice?: ReactNode
  action?: ReactNode
  details?: ReactNode
}

/** What happened, the line that says so, what to do, and the button that does it. */
export function ProblemCard({ title, message, line, advice, action, details }: Props) {
  const { t } = useWords()
  return (
    <section role="alert" className="mb-6 rounded-xl border border-bad bg-surface p-4">
      <h2 className="flex items-center gap-2 font-semibold text-bad">
        <CircleAlert size={18} aria-hidden /> {title}
      </h2>
      <p className="mt-1.5">{message}</p>
      {line && (
        <pre className="mt-2 overflow-x-auto rounded-md bg-sunken px-3 py-2 font-mono text-[13px] whitespace-pre-wrap">{line}</pre>
      )}
      {advice && (
        <p className="mt-2 text-sm">
          <span className="font-medium">{t("problem.what_to_do")}</span> {advice}
        </p>
      )}
      {action && <div className="mt-3 flex flex-wrap gap-2">{action}</div>}
      {details && (
        <details className="mt-3 text-sm">
          <summary className="text-muted">{t("problem.details")}</summary>
          <div className="mt-2">{details}</div>
        </details>
      )}
    </section>
  )
}
