import { ChevronLeft, ChevronRight, Pencil, RotateCw, ThumbsDown, ThumbsUp } from "lucide-react"
import { useState } from "react"
import { patch } from "~/api/http"
import { client } from "~/api/queries"
import type { ConversationDetail, MessageIn, MessageOut, ModelOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { TextArea } from "~/parts/Field"
import { MessageView } from "~/parts/MessageView"
import { placeOf, type Chosen, type Shown } from "./branches"
import { AnswerFacts } from "./AnswerFacts"

interface Props {
  conversationId: number
  shown: Shown
  models: ModelOut[]
  /** False while an answer is being written. */
  isIdle: boolean
  isLast: boolean
  onChoose: (chosen: Chosen) => void
  onAsk: (body: MessageIn) => void
}

/** A question or an answer with what one can do about it: change, answer again, judge, leaf through its versions. */
export function Turn({ conversationId, shown, models, isIdle, isLast, onChoose, onAsk }: Props) {
  const { t } = useWords()
  const [isEditing, setEditing] = useState(false)
  const { message, versions } = shown
  if (isEditing) {
    return (
      <Editor
        message={message}
        onCancel={() => setEditing(false)}
        onSend={(content) => {
          setEditing(false)
          onAsk({ content, parent_id: message.parent_id })
        }}
      />
    )
  }
  const leaf = versions.length > 1 && isIdle && <Versions shown={shown} onChoose={onChoose} />
  if (message.role !== "assistant") {
    return (
      <MessageView
        message={message}
        footer={leaf && <div className="flex min-h-7 items-center text-xs text-muted">{leaf}</div>}
        actions={
          isIdle &&
          message.role === "user" && (
            <Action label={t("chat.edit")} onClick={() => setEditing(true)}>
              <Pencil size={14} aria-hidden />
            </Action>
          )
        }
      />
    )
  }
  return (
    <MessageView
      message={message}
      footer={
        <div className="flex min-h-8 flex-wrap items-center gap-x-2 text-xs text-muted">
          {leaf}
          <AnswerFacts message={message} models={models} />
          {isIdle && (
            <span className="-ml-1.5 flex items-center">
              <Rating conversationId={conversationId} message={message} />
              {message.parent_id !== null && (
                <Action label={t("chat.again")} onClick={() => onAsk({ regenerate: true, parent_id: message.parent_id })}>
                  <RotateCw size={14} aria-hidden /> {isLast && t("chat.again")}
                </Action>
              )}
            </span>
          )}
        </div>
      }
    />
  )
}

function Action({ label, pressed, onClick, children }: { label: string; pressed?: boolean; onClick: () => void; children: React.ReactNode }) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      aria-pressed={pressed}
      onClick={onClick}
      className="inline-flex min-h-7 min-w-7 items-center justify-center gap-1 rounded-md px-1.5 text-muted hover:bg-hover hover:text-ink aria-pressed:text-accent"
    >
      {children}
    </button>
  )
}

function Versions({ shown, onChoose }: { shown: Shown; onChoose: (chosen: Chosen) => void }) {
  const { t } = useWords()
  const { message, versions } = shown
  const index = versions.indexOf(message.id)
  const go = (to: number) => onChoose({ [placeOf(message.parent_id)]: versions[to]! })
  const step = "inline-flex size-7 items-center justify-center rounded-md hover:bg-hover hover:text-ink disabled:opacity-40"
  return (
    <span role="group" aria-label={t("chat.versions")} className="num -ml-2 inline-flex items-center">
      <button type="button" className={step} aria-label={t("chat.version_before")} disabled={index === 0} onClick={() => go(index - 1)}>
        <ChevronLeft size={15} aria-hidden />
      </button>
      {t("chat.version_of", { number: index + 1, total: versions.length })}
      <button type="button" className={step} aria-label={t("chat.version_after")} disabled={index === versions.length - 1} onClick={() => go(index + 1)}>
        <ChevronRight size={15} aria-hidden />
      </button>
    </span>
  )
}

function Rating({ conversationId, message }: { conversationId: number; message: MessageOut }) {
  const { t } = useWords()
  const rate = async (rating: 1 | -1) => {
    const next = message.rating === rating ? null : rating
    const key = ["conversations", String(conversationId), {}]
    const put = (value: MessageOut["rating"]) =>
      client.setQueryData<ConversationDetail>(key, (known) => known && { ...known, messages: known.messages.map((one) => (one.id === message.id ? { ...one, rating: value } : one)) })
    put(next)
    try {
      await patch(`/conversations/${conversationId}/messages/${message.id}`, { rating: next })
    } catch {
      put(message.rating)
    }
  }
  return (
    <>
      <Action label={t("chat.good")} pressed={message.rating === 1} onClick={() => void rate(1)}>
        <ThumbsUp size={14} aria-hidden fill={message.rating === 1 ? "currentColor" : "none"} />
      </Action>
      <Action label={t("chat.bad")} pressed={message.rating === -1} onClick={() => void rate(-1)}>
        <ThumbsDown size={14} aria-hidden fill={message.rating === -1 ? "currentColor" : "none"} />
      </Action>
    </>
  )
}

function Editor({ message, onCancel, onSend }: { message: MessageOut; onCancel: () => void; onSend: (content: string) => void }) {
  const { t } = useWords()
  const [text, setText] = useState(message.content)
  const content = text.trim()
  return (
    <div className="py-3 sm:pl-10">
      <TextArea
        autoFocus
        rows={Math.min(12, Math.max(2, text.split("\n").length + 1))}
        aria-label={t("chat.edit")}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onCancel()
        }}
      />
      <div className="mt-2 flex flex-wrap items-center justify-end gap-2">
        <span className="mr-auto text-xs text-muted">{t("chat.edit_hint")}</span>
        <Button onClick={onCancel}>{t("common.cancel")}</Button>
        <Button look="main" disabled={!content || content === message.content.trim()} onClick={() => onSend(content)}>
          {t("chat.send")}
        </Button>
      </div>
    </div>
  )
}
