import type { TrainingJobOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button, ButtonLink } from "~/parts/Button"
import { ProblemCard } from "~/parts/ProblemCard"

/** Reasons where the same again would fail the same way: the settings have to change first. */
const NEEDS_CHANGE = new Set(["user_error", "bad_data", "out_of_memory", "diverged", "model_unavailable"])

export function Failed({ job, onResume }: { job: TrainingJobOut; onResume: () => void }) {
  const { t, phrase } = useWords()
  const failure = job.failure
  const reason = failure?.reason ?? "internal"
  return (
    <ProblemCard
      title={t(`failure.${reason}`)}
      message={failure?.message ? phrase(failure.message) : t("failure.no_message")}
      line={failure?.line}
      advice={failure?.advice ? phrase(failure.advice) : t(`advice.${reason}`)}
      action={
        <>
          {NEEDS_CHANGE.has(reason) ? (
            <ButtonLink look="main" to={`/training/new?from=${job.id}`}>{t("training.change_settings")}</ButtonLink>
          ) : (
            <Button look="main" onClick={onResume}>{t("training.resume")}</Button>
          )}
          <ButtonLink look="quiet" to="?tab=log">
            {t("training.see_log")}
          </ButtonLink>
        </>
      }
    />
  )
}
