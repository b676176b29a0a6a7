import { remove } from "~/api/http"
import { storeFresh } from "~/api/queries"
import type { WorkerOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Confirm } from "~/parts/Confirm"

/** Asks before a machine is removed, and says what that loses. */
export function RemoveWorker({ worker, onClose, onRemoved }: { worker: WorkerOut; onClose: () => void; onRemoved?: () => void }) {
  const { t } = useWords()
  const job = worker.current_job
  return (
    <Confirm
      open
      onClose={onClose}
      title={t("workers.remove_one", { name: worker.name })}
      action={t("workers.remove")}
      onConfirm={async () => {
        await remove(`/workers/${worker.id}`)
        storeFresh<WorkerOut>("workers", { id: worker.id, deleted: true })
        onRemoved?.()
      }}
    >
      <ul className="list-disc space-y-1 pl-5">
        <li>{t("workers.remove_key")}</li>
        {job && <li>{t("workers.remove_job", { job: job.name })}</li>}
        <li>{t("workers.remove_history")}</li>
        <li>{t("workers.remove_stays")}</li>
      </ul>
    </Confirm>
  )
}
