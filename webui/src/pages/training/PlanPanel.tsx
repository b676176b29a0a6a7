import { TriangleAlert } from "lucide-react"
import { useList, useOne } from "~/api/queries"
import type { DatasetOut, ModelOut, StatsOut, WorkerOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import type { FormField } from "~/parts/schema_fields"
import { Facts } from "~/parts/Values"
import { planOf } from "./plan"

interface Props {
  dataset: DatasetOut | undefined
  model: ModelOut | undefined
  config: Record<string, unknown>
  fields: FormField[]
}

/** What the run will be, from what is chosen; it answers as one types. */
export function PlanPanel({ dataset, model, config, fields }: Props) {
  const { t, format } = useWords()
  const stats = useOne<StatsOut>(dataset?.stats_status === "ready" ? `/datasets/${dataset.id}/stats` : null).data
  const workers = useList<WorkerOut>("/workers").data?.items
  const online = (workers ?? []).filter(({ status }) => status !== "offline")
  const plan = planOf(dataset, stats, config, fields)
  const longest = stats?.tokens?.max
  const warnings = [
    workers && online.length === 0 ? t("plan.no_worker") : null,
    typeof longest === "number" && plan.maxLength !== null && longest > plan.maxLength
      ? t("plan.cut", { longest, limit: plan.maxLength })
      : null,
    model?.context_length && plan.maxLength && plan.maxLength > model.context_length
      ? t("plan.over_context", { limit: plan.maxLength, context: model.context_length })
      : null,
  ].filter((warning): warning is string => warning !== null)
  return (
    <section className="card p-4" aria-live="polite">
      <h2 className="mb-3 font-semibold">{t("plan.title")}</h2>
      <Facts
        items={[
          [t("datasets.rows"), format.number(plan.rows)],
          [t("plan.tokens"), plan.tokens === null ? "–" : format.compact(plan.tokens)],
          [t("plan.steps"), plan.steps === null ? "–" : format.number(plan.steps)],
          [t("plan.batch"), format.number(plan.effectiveBatch)],
          [t("plan.workers"), workers ? t("plan.online", { count: online.length }) : "–"],
        ]}
      />
      {warnings.map((warning) => (
        <p key={warning} className="mt-3 flex gap-2 rounded-lg bg-warn-soft px-3 py-2 text-sm text-warn">
          <TriangleAlert size={16} aria-hidden className="mt-0.5 shrink-0" /> {warning}
        </p>
      ))}
    </section>
  )
}
