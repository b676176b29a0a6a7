import { useMutation } from "@tanstack/react-query"
import { post } from "~/api/http"
import { storeFresh } from "~/api/queries"
import type { WorkerCreated, WorkerOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { CopyBox } from "~/parts/Copy"
import { Dialog } from "~/parts/Dialog"
import { ErrorNote } from "~/parts/ErrorNote"
import { initWith, START, STOP } from "./commands"

/** Replaces a machine's key: asks first, since the old one stops at once, then shows the new one a single time. */
export function RotateKey({ worker, onClose }: { worker: WorkerOut; onClose: () => void }) {
  const { t } = useWords()
  const rotate = useMutation({
    mutationFn: () => post<WorkerCreated>(`/workers/${worker.id}/rotate-key`),
    onSuccess: (made) => storeFresh("workers", made.worker),
  })
  const key = rotate.data?.api_key
  return (
    <Dialog
      open
      wide
      sticky={key !== undefined}
      onClose={onClose}
      title={t("workers.rotate_one", { name: worker.name })}
      footer={
        key ? (
          <Button look="main" onClick={onClose}>
            {t("common.done")}
          </Button>
        ) : (
          <>
            <Button onClick={onClose}>{t("common.cancel")}</Button>
            <Button look="danger" busy={rotate.isPending} onClick={() => rotate.mutate()}>
              {t("workers.rotate")}
            </Button>
          </>
        )
      }
    >
      {key ? (
        <div className="space-y-2 text-sm">
          <p>{t("workers.rotate_how")}</p>
          {[STOP, initWith(key, " --force"), START].map((command, index) => (
            <CopyBox key={command} text={command} label={t("workers.copy_command", { number: index + 1 })} />
          ))}
          <p className="text-warn">{t("workers.key_once")}</p>
        </div>
      ) : (
        <p className="text-sm">{t("workers.rotate_text")}</p>
      )}
      <ErrorNote error={rotate.error} />
    </Dialog>
  )
}
