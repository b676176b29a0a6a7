import type { TrainingJobOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { CopyButton } from "~/parts/Copy"
import { Section } from "~/parts/Page"

/** Every setting with the value that held; what was asked for stands out. */
export function Configuration({ job }: { job: TrainingJobOut }) {
  const { t } = useWords()
  const names = Object.keys(job.resolved_config).sort((a, b) => Number(b in job.config) - Number(a in job.config))
  return (
    <div className="max-w-4xl">
      <Section title={t("training.settings")} actions={<CopyButton text={JSON.stringify(job.config, null, 2)} label={t("training.copy_config")} />}>
        <div className="card grid gap-x-8 p-4 md:grid-cols-2">
          {names.map((name) => (
            <div key={name} className="flex min-w-0 items-baseline justify-between gap-3 border-b border-line py-1 text-sm">
              <code className="font-mono text-[13px] text-muted">{name}</code>
              <span className={`num min-w-0 text-right break-words ${name in job.config ? "font-semibold text-accent" : ""}`}>
                {shown(job.resolved_config[name])}
                {name in job.config && <span className="sr-only"> {t("training.asked_for")}</span>}
              </span>
            </div>
          ))}
        </div>
        <p className="mt-2 text-sm text-muted">{t("training.config_hint")}</p>
      </Section>
    </div>
  )
}

function shown(value: unknown): string {
  if (value === null || value === undefined) return "–"
  if (typeof value === "number" && value !== 0 && Math.abs(value) < 1e-3) return value.toExponential()
  return typeof value === "string" ? value : JSON.stringify(value)
}
