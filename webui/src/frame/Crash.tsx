import { useRouteError } from "react-router"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { ProblemCard } from "~/parts/ProblemCard"

/** A page that failed to load or to draw: says so and offers the one thing that helps. */
export function Crash() {
  const { t } = useWords()
  const error = useRouteError()
  return (
    <div className="mx-auto max-w-xl p-6">
      <ProblemCard
        title={t("crash.title")}
        message={t("crash.text")}
        action={
          <Button look="main" onClick={() => location.reload()}>
            {t("crash.reload")}
          </Button>
        }
        details={<code className="font-mono text-[13px]">{error instanceof Error ? error.message : String(error)}</code>}
      />
    </div>
  )
}
