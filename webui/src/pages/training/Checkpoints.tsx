import { useMutation } from "@tanstack/react-query"
import { Star } from "lucide-react"
import { post } from "~/api/http"
import { useOne, useRefresh } from "~/api/queries"
import type { CheckpointOut, TrainingJobOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { ErrorNote } from "~/parts/ErrorNote"
import { Loaded } from "~/parts/Page"
import { Ago, Bytes } from "~/parts/Values"

export function Checkpoints({ job }: { job: TrainingJobOut }) {
  const { t, format } = useWords()
  const refresh = useRefresh()
  const checkpoints = useOne<{ items: CheckpointOut[] }>(`/training-jobs/${job.id}/checkpoints`)
  const canResume = job.status === "failed" || job.status === "cancelled"
  const resume = useMutation({
    mutationFn: (checkpoint_id: number) => post(`/training-jobs/${job.id}/resume`, { checkpoint_id }),
    onSuccess: () => refresh("training-jobs"),
  })
  return (
    <Loaded query={checkpoints}>
      {({ items }) =>
        items.length === 0 ? (
          <p className="card p-6 text-center text-sm text-muted">{t("checkpoints.empty")}</p>
        ) : (
          <div className="max-w-4xl">
            <ErrorNote error={resume.error} />
            <ul className="card divide-y divide-line">
              {[...items]
                .sort((a, b) => b.step - a.step)
                .map((one) => (
                  <li key={one.id} className="num flex flex-wrap items-center gap-x-5 gap-y-1 px-4 py-2.5 text-sm">
                    <span className="w-28 font-medium">{t("samples.step", { step: one.step })}</span>
                    {Object.entries(one.metrics).map(([name, value]) => (
                      <span key={name} className="text-muted">
                        {name} <span className="text-ink">{format.metric(value)}</span>
                      </span>
                    ))}
                    {one.best && (
                      <span className="inline-flex items-center gap-1 text-good">
                        <Star size={14} aria-hidden /> {t("checkpoints.best")}
                      </span>
                    )}
                    <span className="ml-auto text-muted">
                      <Bytes value={one.size} /> · <Ago time={one.created_at} />
                    </span>
                    {canResume && (
                      <Button busy={resume.isPending} onClick={() => resume.mutate(one.id)}>
                        {t("checkpoints.resume")}
                      </Button>
                    )}
                  </li>
                ))}
            </ul>
          </div>
        )
      }
    </Loaded>
  )
}
