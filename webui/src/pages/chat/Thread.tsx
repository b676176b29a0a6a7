import { MessagesSquare } from "lucide-react"
import { useEffect, useRef } from "react"
import type { ConversationDetail, MessageIn, ModelOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button, ButtonLink } from "~/parts/Button"
import { EmptyState } from "~/parts/EmptyState"
import { ErrorNote } from "~/parts/ErrorNote"
import { MessageView } from "~/parts/MessageView"
import { Skeletons } from "~/parts/Page"
import { dismissStream, type ChatStream } from "~/state/chat_stream"
import { upTo, type Chosen, type Shown } from "./branches"
import { Turn } from "./Turn"
import { Waiting } from "./Waiting"

interface Props {
  id: number | null
  conversation: ConversationDetail | undefined
  branch: Shown[]
  onChoose: (chosen: Chosen) => void
  onAsk: (body: MessageIn) => void
  isLoading: boolean
  stream: ChatStream | undefined
  models: ModelOut[]
  hasModels: boolean
}

/** One branch, and the answer that is being written; keeps to the end unless one scrolls up. */
export function Thread({ id, conversation, branch, onChoose, onAsk, isLoading, stream, models, hasModels }: Props) {
  const { t } = useWords()
  const box = useRef<HTMLDivElement>(null)
  const follows = useRef(true)
  const shown = stream ? beforeStream(branch, stream.body) : branch
  const text = stream?.text ?? ""
  useEffect(() => {
    if (follows.current) box.current?.scrollTo({ top: box.current.scrollHeight })
  }, [shown.length, text, stream?.phase])
  const onScroll = () => {
    const view = box.current
    if (view) follows.current = view.scrollHeight - view.scrollTop - view.clientHeight < 80
  }
  if (shown.length === 0 && !stream && !isLoading) return <Nothing hasModels={hasModels} />
  const isIdle = stream === undefined
  const question = stream?.body.content
  return (
    <div ref={box} onScroll={onScroll} tabIndex={0} role="group" aria-label={t("chat.messages")} className="min-h-0 flex-1 overflow-y-auto -outline-offset-2">
      <div className="mx-auto w-full max-w-3xl px-3 py-3 sm:px-5">
        {isLoading && <Skeletons rows={3} height={70} />}
        {shown.map((one) => (
          <Turn
            key={one.message.id}
            conversationId={id ?? conversation?.id ?? 0}
            shown={one}
            models={models}
            isIdle={isIdle}
            isLast={one === shown[shown.length - 1]}
            onChoose={onChoose}
            onAsk={onAsk}
          />
        ))}
        {question && <MessageView message={{ role: "user", content: question }} />}
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
              <Button onClick={() => onAsk(stream.body)}>{t("common.try_again")}</Button>
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

/** What stands above the answer that is being written, whatever the hub has stored of it meanwhile. */
function beforeStream(branch: Shown[], body: MessageIn): Shown[] {
  return upTo(branch, body.parent_id ?? null)
}

function Nothing({ hasModels }: { hasModels: boolean }) {
  const { t } = useWords()
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
