import { MessagesSquare, RotateCw } from "lucide-react"
import { useEffect, useRef } from "react"
import type { ConversationDetail, MessageOut, ModelOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button, ButtonLink } from "~/parts/Button"
import { EmptyState } from "~/parts/EmptyState"
import { ErrorNote } from "~/parts/ErrorNote"
import { MessageView } from "~/parts/MessageView"
import { Skeletons } from "~/parts/Page"
import { ask, dismissStream, type ChatStream } from "~/state/chat_stream"
import { Waiting } from "./Waiting"

interface Props {
  id: number | null
  conversation: ConversationDetail | undefined
  isLoading: boolean
  stream: ChatStream | undefined
  models: ModelOut[]
  hasModels: boolean
}

/** The messages, and the answer that is being written; keeps to the end unless one scrolls up. */
export function Thread({ id, conversation, isLoading, stream, models, hasModels }: Props) {
  const { t } = useWords()
  const box = useRef<HTMLDivElement>(null)
  const follows = useRef(true)
  const messages = shownMessages(conversation?.messages ?? [], stream)
  const text = stream?.text ?? ""
  useEffect(() => {
    if (follows.current) box.current?.scrollTo({ top: box.current.scrollHeight })
  }, [messages.length, text, stream?.phase])
  const onScroll = () => {
    const view = box.current
    if (view) follows.current = view.scrollHeight - view.scrollTop - view.clientHeight < 80
  }
  if (messages.length === 0 && !stream && !isLoading) {
    return (
      <div className="flex flex-1 items-center justify-center overflow-y-auto p-4">
        {hasModels ? (
          <div className="text-center text-muted">
            <MessagesSquare size={30} aria-hidden className="mx-auto mb-2" />
            <p>{t("chat.empty")}</p>
          </div>
        ) : (
          <EmptyState
            icon={MessagesSquare}
            title={t("chat.needs_model")}
            text={t("chat.needs_model_text")}
            action={
              <ButtonLink look="main" to="/models?add=1">
                {t("models.add")}
              </ButtonLink>
            }
          />
        )}
      </div>
    )
  }
  const isIdle = stream === undefined
  return (
    <div ref={box} onScroll={onScroll} tabIndex={0} role="group" aria-label={t("chat.messages")} className="min-h-0 flex-1 overflow-y-auto -outline-offset-2">
      <div className="mx-auto w-full max-w-3xl px-3 py-3 sm:px-5">
        {isLoading && <Skeletons rows={3} height={70} />}
        {messages.map((message, index) => (
          <MessageView
            key={message.id}
            message={message}
            footer={
              message.role === "assistant" && (
                <Footer message={message} models={models} onAgain={isIdle && id !== null && index === messages.length - 1 ? () => void ask(id, { regenerate: true }) : null} />
              )
            }
          />
        ))}
        {stream?.question && <MessageView message={{ role: "user", content: stream.question }} />}
        {stream && (stream.text || stream.state !== "failed") && (
          <MessageView
            streaming={stream.state === "running"}
            message={{ role: "assistant", content: stream.text }}
            footer={stream.text === "" && stream.state === "running" && <Waiting phase={stream.phase} />}
          />
        )}
        {stream?.state === "failed" && id !== null && (
          <div className="pb-3">
            <ErrorNote error={stream.error} />
            <div className="mt-2 flex gap-2">
              <Button onClick={() => void ask(id, stream.question === null ? { regenerate: true } : { content: stream.question })}>{t("common.try_again")}</Button>
              <Button look="quiet" onClick={() => dismissStream(id)}>
                {t("common.close")}
              </Button>
            </div>
          </div>
        )}
      </div>
    </div>
  )
}

/** Without the answer that is being replaced, and without the question that the hub has stored already. */
function shownMessages(stored: MessageOut[], stream: ChatStream | undefined): MessageOut[] {
  const visible = stored.filter(({ role }) => role !== "system")
  if (!stream) return visible
  const last = visible[visible.length - 1]
  if (stream.question === null) return last?.role === "assistant" ? visible.slice(0, -1) : visible
  return last?.role === "user" && last.content === stream.question ? visible.slice(0, -1) : visible
}

function Footer({ message, models, onAgain }: { message: MessageOut; models: ModelOut[]; onAgain: (() => void) | null }) {
  const { t, format } = useWords()
  const { timings, usage } = message
  const facts = [
    models.find(({ id }) => id === message.model_id)?.name,
    message.worker_name,
    usage?.completion_tokens ? t("chat.tokens", { count: usage.completion_tokens }) : null,
    timings?.tokens_per_second ? t("chat.speed", { speed: format.number(timings.tokens_per_second, 1) }) : null,
    timings?.first_token_seconds ? t("chat.first_token", { time: format.duration(timings.first_token_seconds) }) : null,
    message.finish_reason === "length" ? t("chat.cut") : null,
    message.finish_reason === "cancelled" ? t("chat.stopped") : null,
  ]
  return (
    <div className="flex min-h-8 flex-wrap items-center gap-x-2 text-xs text-muted">
      <span className="num">{facts.filter(Boolean).join(" · ")}</span>
      {onAgain && (
        <button type="button" onClick={onAgain} className="inline-flex items-center gap-1 rounded-md px-1.5 py-1 hover:bg-hover hover:text-ink">
          <RotateCw size={13} aria-hidden /> {t("chat.again")}
        </button>
      )}
    </div>
  )
}
