import { ArrowUp, Square } from "lucide-react"
import { useEffect, useRef, useState, type KeyboardEvent } from "react"
import { useWords } from "~/i18n"
import type { ChatStream } from "~/state/chat_stream"

const TALLEST = 240

export function Composer({ disabled, stream, onSubmit }: { disabled: boolean; stream: Pick<ChatStream, "state" | "stop"> | undefined; onSubmit: (content: string) => void }) {
  const { t } = useWords()
  const [text, setText] = useState("")
  const area = useRef<HTMLTextAreaElement>(null)
  const isBusy = stream?.state === "running"
  useEffect(() => {
    const element = area.current
    if (!element) return
    element.style.height = "auto"
    element.style.height = `${Math.min(TALLEST, element.scrollHeight)}px`
  }, [text])
  const submit = () => {
    if (!text.trim() || isBusy || disabled) return
    onSubmit(text.trim())
    setText("")
  }
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    submit()
  }
  return (
    <div className="mt-2 flex items-end gap-2 rounded-2xl border border-line-strong bg-surface p-2 focus-within:border-accent">
      <textarea
        ref={area}
        rows={1}
        aria-label={t("chat.message")}
        placeholder={t("chat.message")}
        value={text}
        disabled={disabled}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKey}
        className="min-h-9 flex-1 resize-none bg-transparent px-2 py-1.5 focus-visible:outline-none"
      />
      {isBusy ? (
        <Round label={t("chat.stop")} onClick={stream.stop}>
          <Square size={15} aria-hidden fill="currentColor" />
        </Round>
      ) : (
        <Round label={t("chat.send")} onClick={submit} disabled={disabled || !text.trim()}>
          <ArrowUp size={18} aria-hidden />
        </Round>
      )}
    </div>
  )
}

function Round(props: { label: string; onClick: () => void; disabled?: boolean; children: React.ReactNode }) {
  return (
    <button
      type="button"
      aria-label={props.label}
      title={props.label}
      disabled={props.disabled}
      onClick={props.onClick}
      className="inline-flex size-9 shrink-0 items-center justify-center rounded-full bg-accent text-on-accent hover:bg-accent-strong disabled:opacity-40"
    >
      {props.children}
    </button>
  )
}
