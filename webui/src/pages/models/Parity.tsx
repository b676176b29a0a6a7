import type { ExportOut } from "~/api/types.gen"
import { useWords, type Key } from "~/i18n"

const VERDICTS: Record<string, Key> = { same: "exports.same", close: "exports.close", different: "exports.different" }

/** Whether the exported files answer like the model. */
export function Parity({ parity }: { parity: NonNullable<ExportOut["parity"]> }) {
  const { t, format } = useWords()
  const verdict = VERDICTS[parity.verdict]
  return (
    <p className="mb-2 text-sm text-muted">
      {verdict ? t(verdict) : parity.verdict}{" "}
      {parity.token_agreement !== null && t("exports.parity", { share: format.percent(parity.token_agreement, 1), count: parity.compared_tokens })}
    </p>
  )
}
