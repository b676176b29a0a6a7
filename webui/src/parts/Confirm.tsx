import { useMutation } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { useWords } from "~/i18n"
import { Button } from "./Button"
import { Dialog } from "./Dialog"
import { ErrorNote } from "./ErrorNote"

interface Props {
  open: boolean
  onClose: () => void
  title: string
  /** What will be lost, with numbers. */
  children: ReactNode
  action: string
  onConfirm: () => Promise<unknown>
}

/** Only for what cannot be undone. */
export function Confirm({ open, onClose, title, children, action, onConfirm }: Props) {
  const { t } = useWords()
  const run = useMutation({ mutationFn: onConfirm, onSuccess: onClose })
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title={title}
      footer={
        <>
          <Button onClick={onClose}>{t("common.cancel")}</Button>
          <Button look="danger" busy={run.isPending} onClick={() => run.mutate()}>
            {action}
          </Button>
        </>
      }
    >
      <div className="text-sm">{children}</div>
      <ErrorNote error={run.error} />
    </Dialog>
  )
}
