import { TriangleAlert } from "lucide-react"
import type { CheckOut, ModelOut } from "~/api/types.gen"
import { useWords, type Key, type Params } from "~/i18n"
import { Bytes, Count, Facts } from "~/parts/Values"
import type { DraftCheck } from "./draft_check"

interface Props {
  check: DraftCheck
  model: ModelOut | undefined
  online: number | null
}

/** What the run will come to, as the hub works it out while one types. */
export function PlanPanel({ check, model, online }: Props) {
  const { t, format } = useWords()
  const estimate = check.said?.estimate
  const share = estimate?.trained_parameters && model?.parameters ? estimate.trained_parameters / model.parameters : null
  const dash = <span className="text-muted">–</span>
  return (
    <section className="card p-4" aria-live="polite" aria-label={t("plan.title")}>
      <h2 className="mb-3 font-semibold">{t("plan.title")}</h2>
      <Facts
        items={[
          [t("plan.rows"), estimate?.training_rows == null ? dash : <Count value={estimate.training_rows} />],
          [t("plan.held_back"), estimate?.validation_rows == null ? dash : <Count value={estimate.validation_rows} />],
          [t("plan.steps"), estimate?.steps == null ? dash : <Count value={estimate.steps} />],
          [t("plan.tokens"), estimate?.tokens == null ? dash : format.compact(estimate.tokens)],
          [t("plan.batch"), estimate?.effective_batch == null ? dash : <Count value={estimate.effective_batch} />],
          [t("plan.length"), estimate?.max_length == null ? dash : t("plan.length_tokens", { count: estimate.max_length })],
          [
            t("plan.trained"),
            estimate?.trained_parameters == null ? (
              dash
            ) : (
              <>
                {format.compact(estimate.trained_parameters)} {share !== null && <span className="text-muted">({format.percent(share)})</span>}
              </>
            ),
          ],
          [t("plan.memory"), estimate?.memory_bytes == null ? dash : <>{t("plan.from")} <Bytes value={estimate.memory_bytes} /></>],
          [t("plan.workers"), online === null ? dash : t("plan.online", { count: online })],
        ]}
      />
      {!estimate && <p className="mt-3 text-sm text-muted">{t("plan.choose")}</p>}
      {(check.said?.checks ?? []).filter(({ level }) => level !== "ok").map((one) => (
        <Warning key={one.code} check={one} />
      ))}
    </section>
  )
}

const SENTENCES: Record<string, Key> = {
  few_rows: "check.few_rows",
  rows_cut: "check.rows_cut",
  no_worker: "check.no_worker",
  none_selected: "check.none_selected",
  no_gpu: "check.no_gpu",
  little_memory: "check.little_memory",
}

function Warning({ check }: { check: CheckOut }) {
  const { t, phrase, format } = useWords()
  const key = SENTENCES[check.code]
  const sizes: Params = check.code === "little_memory" ? { needed: format.bytes(Number(check.params.needed)), largest: format.bytes(Number(check.params.largest)) } : {}
  return (
    <p className="mt-3 flex gap-2 rounded-lg bg-warn-soft px-3 py-2 text-sm text-warn">
      <TriangleAlert size={16} aria-hidden className="mt-0.5 shrink-0" />
      <span className="min-w-0">
        {key ? t(key, { ...check.params, ...sizes }) : phrase(check.message)} {check.advice && phrase(check.advice)}
      </span>
    </p>
  )
}
