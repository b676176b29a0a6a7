import { Columns2, PanelLeft, SlidersHorizontal, SquarePen } from "lucide-react"
import { useEffect, useMemo, useState } from "react"
import { useNavigate, useParams, useSearchParams } from "react-router"
import { patch, post } from "~/api/http"
import { useList, useOne, useRefresh } from "~/api/queries"
import type { ConversationDetail, ConversationOut, MessageIn, ModelOut, SamplingIn } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { IconButton } from "~/parts/Button"
import { Dialog } from "~/parts/Dialog"
import { ErrorNote } from "~/parts/ErrorNote"
import { ask, useChatStream } from "~/state/chat_stream"
import { branchOf, type Chosen } from "./branches"
import { Composer } from "./Composer"
import { comparePath } from "./compare_path"
import { ConversationList } from "./ConversationList"
import { ModelPicker } from "./ModelPicker"
import { ParameterForm, type ChatSettings } from "./ParameterForm"
import { Thread } from "./Thread"

const NO_SETTINGS: ChatSettings = { systemPrompt: "", params: {} }

export default function ChatPage() {
  const { t } = useWords()
  const { id: idText } = useParams()
  const id = idText ? Number(idText) : null
  const navigate = useNavigate()
  const refresh = useRefresh()
  const [query] = useSearchParams()
  const models = useList<ModelOut>("/models")
  const ready = (models.data?.items ?? []).filter(({ state }) => state === "ready")
  const conversation = useOne<ConversationDetail>(id === null ? null : `/conversations/${id}`)
  const stream = useChatStream(id)
  const [draftModel, setDraftModel] = useState(query.get("model") ?? "")
  const [draft, setDraft] = useState<ChatSettings>(NO_SETTINGS)
  const [error, setError] = useState<unknown>(null)
  const [chosen, setChosen] = useState<Chosen>({})
  const [panel, setPanel] = useState<"list" | "settings" | null>(null)
  const detail = id === null ? undefined : conversation.data
  const modelId = detail ? String(detail.model_id ?? "") : draftModel || String(newest(ready)?.id ?? "")
  const settings: ChatSettings = detail ? { systemPrompt: detail.system_prompt ?? "", params: detail.params } : draft

  useEffect(() => {
    document.title = `${detail?.title || t("nav.chat")} · Parsyn`
  }, [detail?.title, t])
  useEffect(() => {
    setError(null)
    setPanel(null)
    setChosen({})
    if (id === null && query.get("model")) setDraftModel(query.get("model") ?? "")
  }, [id, query])

  const attempt = async (step: () => Promise<unknown>) => {
    setError(null)
    try {
      await step()
    } catch (problem) {
      setError(problem)
    }
  }
  const update = (change: { model_id?: number; system_prompt?: string | null; params?: SamplingIn }) =>
    attempt(async () => {
      await patch(`/conversations/${id ?? 0}`, change)
      refresh("conversations")
    })
  const saveSettings = (next: ChatSettings) => {
    setPanel(null)
    if (id === null) setDraft(next)
    else void update({ system_prompt: next.systemPrompt || null, params: next.params })
  }
  const branch = useMemo(() => branchOf((detail?.messages ?? []).filter(({ role }) => role !== "system"), chosen), [detail?.messages, chosen])
  const askHere = (body: MessageIn) => {
    if (id === null) return
    void ask(id, body)
    // The branch that is being written on is the newest one from now on.
    setChosen({})
  }
  const submit = (content: string) =>
    attempt(async () => {
      if (id !== null) return askHere({ content, parent_id: branch[branch.length - 1]?.message.id ?? null })
      const created = await post<ConversationOut>("/conversations", {
        model_id: Number(modelId),
        system_prompt: draft.systemPrompt || null,
        params: draft.params,
      })
      refresh("conversations")
      void ask(created.id, { content })
      await navigate(`/chat/${created.id}`)
    })

  return (
    <div className="flex h-[calc(100dvh-3.5rem)] max-sm:-mb-6 max-sm:h-[calc(100dvh-7rem)]">
      <aside className="w-64 shrink-0 border-r border-line bg-surface max-lg:hidden">
        <ConversationList current={id} />
      </aside>
      <section className="flex min-w-0 flex-1 flex-col" aria-label={t("nav.chat")}>
        <header className="flex items-center gap-1 border-b border-line px-3 py-2 sm:px-5">
          <IconButton label={t("chat.conversations")} className="lg:hidden" onClick={() => setPanel("list")}>
            <PanelLeft size={18} aria-hidden />
          </IconButton>
          <h1 className="sr-only">{detail?.title || t("nav.chat")}</h1>
          <ModelPicker models={ready} value={modelId} onChange={(next) => (id === null ? setDraftModel(next) : void update({ model_id: Number(next) }))} />
          <span className="ml-auto flex">
            <IconButton label={t("chat.compare")} onClick={() => void navigate(comparePath(models.data?.items ?? [], modelId))}>
              <Columns2 size={18} aria-hidden />
            </IconButton>
            <IconButton label={t("chat.settings")} onClick={() => setPanel("settings")}>
              <SlidersHorizontal size={18} aria-hidden />
            </IconButton>
            <IconButton label={t("chat.new")} onClick={() => void navigate("/chat")}>
              <SquarePen size={18} aria-hidden />
            </IconButton>
          </span>
        </header>
        <Thread id={id} conversation={detail} branch={branch} onChoose={(one) => setChosen({ ...chosen, ...one })} onAsk={askHere} isLoading={id !== null && conversation.isLoading} stream={stream} models={models.data?.items ?? []} hasModels={!models.data || ready.length > 0} />
        <div className="mx-auto w-full max-w-3xl px-3 pb-3 sm:px-5">
          <ErrorNote error={error ?? conversation.error} />
          <Composer disabled={modelId === ""} stream={stream} onSubmit={(content) => void submit(content)} />
        </div>
      </section>
      <Dialog open={panel === "list"} onClose={() => setPanel(null)} title={t("chat.conversations")}>
        <ConversationList current={id} />
      </Dialog>
      <Dialog open={panel === "settings"} onClose={() => setPanel(null)} title={t("chat.settings")} description={t("chat.settings_text")}>
        <ParameterForm settings={settings} onSave={saveSettings} />
      </Dialog>
    </div>
  )
}

function newest(models: ModelOut[]): ModelOut | undefined {
  return [...models].sort((a, b) => b.created_at.localeCompare(a.created_at))[0]
}
