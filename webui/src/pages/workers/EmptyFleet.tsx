import { KeyRound, Server, Terminal, type LucideIcon } from "lucide-react"
import type { ReactNode } from "react"
import { useWords } from "~/i18n"

/** What a fleet is good for and how the first machine joins it. */
export function EmptyFleet({ action }: { action: ReactNode }) {
  const { t } = useWords()
  return (
    <section className="card px-5 py-8 sm:px-8">
      <h2 className="text-center font-semibold">{t("workers.empty")}</h2>
      <p className="mx-auto mt-1 max-w-xl text-center text-sm text-muted">{t("workers.empty_text")}</p>
      <ol className="mx-auto mt-6 grid max-w-4xl gap-4 md:grid-cols-3">
        <Step number={1} icon={KeyRound} title={t("workers.first_key")} text={t("workers.first_key_text")} />
        <Step number={2} icon={Terminal} title={t("workers.first_run")} text={t("workers.first_run_text")} />
        <Step number={3} icon={Server} title={t("workers.first_seen")} text={t("workers.first_seen_text")} />
      </ol>
      <div className="mt-6 flex justify-center">{action}</div>
    </section>
  )
}

function Step({ number, icon: Icon, title, text }: { number: number; icon: LucideIcon; title: string; text: string }) {
  return (
    <li className="rounded-lg border border-line p-4">
      <div className="flex items-center gap-2 text-sm font-medium">
        <Icon size={17} aria-hidden className="text-accent" />
        <span>
          <span className="num text-muted">{number}.</span> {title}
        </span>
      </div>
      <p className="mt-1 text-sm text-muted">{text}</p>
    </li>
  )
}
