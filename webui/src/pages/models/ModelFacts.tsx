import { Link } from "react-router"
import { useOne } from "~/api/queries"
import type { ModelOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { CopyButton } from "~/parts/Copy"
import { Section } from "~/parts/Page"
import { Ago, Bytes, Count, Facts } from "~/parts/Values"

export function ModelFacts({ model }: { model: ModelOut }) {
  const { t } = useWords()
  const base = useOne<ModelOut>(model.base_model_id === null ? null : `/models/${model.base_model_id}`).data
  return (
    <>
      <Section title={t("models.facts")}>
        <div className="card p-4">
          <Facts
            items={[
              [
                t("models.slug"),
                <span className="flex items-center gap-1">
                  <code className="min-w-0 font-mono text-[13px] break-all">{model.slug}</code>
                  <CopyButton text={model.slug} />
                </span>,
              ],
              [t("models.source"), t(`source.${model.source}`)],
              ...(model.hub_id ? [[t("models.hub_id"), model.hub_id] as [string, string]] : []),
              ...(model.revision ? [[t("models.revision"), <code className="font-mono text-[13px] break-all">{model.revision}</code>] as [string, React.ReactNode]] : []),
              [t("models.base"), base ? <Link to={`/models/${base.id}`} className="text-accent hover:underline">{base.name}</Link> : "–"],
              [
                t("models.job"),
                model.training_job_id === null ? "–" : (
                  <Link to={`/training/${model.training_job_id}`} className="text-accent hover:underline">
                    {t("models.job_of", { id: String(model.training_job_id) })}
                  </Link>
                ),
              ],
              [t("models.architecture"), model.architecture],
              [t("models.parameters"), <Count value={model.parameters} />],
              [t("models.context"), <Count value={model.context_length} />],
              [t("models.formats"), model.formats.join(", ") || "–"],
              [t("models.license"), model.license],
              [t("common.size"), <Bytes value={model.size} />],
              [t("common.created"), <Ago time={model.created_at} />],
            ]}
          />
        </div>
      </Section>
      {model.chat_template && (
        <details className="card mb-7">
          <summary className="px-4 py-3 text-sm font-medium">{t("models.template")}</summary>
          <pre className="max-h-96 overflow-auto border-t border-line px-4 py-3 font-mono text-[13px] whitespace-pre-wrap">{model.chat_template}</pre>
        </details>
      )}
    </>
  )
}
