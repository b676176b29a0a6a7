import { CircleAlert, CircleCheck, X } from "lucide-react"
import { useState } from "react"
import { useWords } from "~/i18n"
import { Button, IconButton } from "~/parts/Button"
import { problemText } from "~/parts/ErrorNote"
import { dismissNotice, notify, useNotices, type Notice } from "~/state/notices"

/** What was just done, at the foot of every page, with its undo. */
export function Notices() {
  const notices = useNotices()
  return (
    <div role="status" className="pointer-events-none fixed inset-x-4 bottom-4 z-50 flex flex-col items-center gap-2 max-sm:bottom-18">
      {notices.map((notice) => (
        <NoticeBar key={notice.id} notice={notice} />
      ))}
    </div>
  )
}

function NoticeBar({ notice }: { notice: Notice }) {
  const { t, phrase } = useWords()
  const [isUndoing, setIsUndoing] = useState(false)
  const Icon = notice.isBad ? CircleAlert : CircleCheck
  const undo = async () => {
    setIsUndoing(true)
    try {
      await notice.undo?.()
    } catch (error) {
      notify({ text: problemText(error, t, phrase), isBad: true })
    }
    dismissNotice(notice.id)
  }
  return (
    <div className="pointer-events-auto flex max-w-xl items-center gap-3 rounded-lg border border-line-strong bg-raised py-1.5 pr-1.5 pl-4 text-sm shadow-pop">
      <Icon size={17} aria-hidden className={`shrink-0 ${notice.isBad ? "text-bad" : "text-good"}`} />
      <span className="min-w-0">{notice.text}</span>
      {notice.undo && (
        <Button busy={isUndoing} onClick={() => void undo()}>
          {t("common.undo")}
        </Button>
      )}
      <IconButton label={t("common.close")} onClick={() => dismissNotice(notice.id)}>
        <X size={16} aria-hidden />
      </IconButton>
    </div>
  )
}
