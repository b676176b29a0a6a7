import { Columns2, SlidersHorizontal, SquarePen } from "lucide-react"
import { useEffect, useRef, useState } from "react"
import { useSearchParams } from "react-router"
import { useList } from "~/api/queries"
import type { ModelOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { ButtonLink, IconButton } from "~/parts/Button"
import { Dialog } from "~/parts/Dialog"
import { ErrorNote } from "~/parts/ErrorNote"
import { MessageView } from "~/parts/MessageView"
import { clearComparison, compare, SIDES, useComparison, type ComparedTurn, type Side, type SideName } from "~/state/compare_stream"
import { AnswerFacts } from "./AnswerFacts"
import { Composer } from "./Composer"
import { ModelPicker } from "./ModelPicker"
import { ParameterForm, type ChatSettings } from "./ParameterForm"
import { Waiting } from "./Waiting"

/** Two models asked the same at once, their answers beside one another. */
export default function ComparePage() {
  const { t } = useWords()
  const [query, setQuery] = useSearchParams()
  const models = useList<ModelOut>("/models").data?.items ?? []
  const ready = models.filter(({ state }) => state === "ready")
  const comparison = useComparison()
  const [settings, setSettings] = useState<ChatSettings>({ systemPrompt: "", params: {} })
  const [isSetting, setSetting] = useState(false)
  const chosen = chosenModels(ready, query)
  const box = useRef<HTMLDivElement>(null)
  const last = comparison.turns[comparison.turns.length - 1]
  useEffect(() => {
    document.title = `${t("compare.title")} · Parsyn`
  }, [t])
  useEffect(() => {
    box.current?.scrollTo({ top: box.current.scrollHeight })
  }, [comparison.turns.length, last?.a.text, last?.b.text])
  const pick = (side: SideName, id: string) => {
    clearComparison()
    setQuery({ a: chosen.a, b: chosen.b, [side]: id }, { replace: true })
  }
  const submit = (question: string) => void compare([Number(chosen.a), Number(chosen.b)], question, settings.systemPrompt, settings.params)
  return (
    <div className="flex h-[calc(100dvh-3.5rem)] flex-col max-sm:-mb-6 max-sm:h-[calc(100dvh-7rem)]">
      <header className="flex items-start gap-1 border-b border-line px-3 py-2 sm:px-5">
        <h1 className="sr-only">{t("compare.title")}</h1>
        <div className="grid min-w-0 flex-1 gap-2 sm:grid-cols-2">
          {SIDES.map((side) => (
            <div key={side} className="flex min-w-0 items-center gap-2">
              <span aria-hidden className="w-4 shrink-0 text-center text-sm font-semibold text-muted uppercase">
                {side}
              </span>
              <ModelPicker label={t("compare.model", { side: side.toUpperCase() })} models={ready} value={chosen[side]} onChange={(id) => pick(side, id)} />
            </div>
          ))}
        </div>
        <IconButton label={t("chat.settings")} onClick={() => setSetting(true)}>
          <SlidersHorizontal size={18} aria-hidden />
        </IconButton>
        <IconButton label={t("compare.clear")} disabled={comparison.turns.length === 0} onClick={clearComparison}>
          <SquarePen size={18} aria-hidden />
        </IconButton>
      </header>
      <div ref={box} tabIndex={0} role="group" aria-label={t("chat.messages")} className="min-h-0 flex-1 overflow-y-auto -outline-offset-2">
        {comparison.turns.length === 0 ? (
          <div className="flex h-full flex-col items-center justify-center gap-2 p-4 text-center text-muted">
            <Columns2 size={30} aria-hidden />
            <p className="max-w-md">{t("compare.empty")}</p>
            <ButtonLink to="/chat">{t("compare.one")}</ButtonLink>
          </div>
        ) : (
          <div className="mx-auto w-full max-w-6xl px-3 py-3 sm:px-5">
            {comparison.turns.map((turn, index) => (
              <Compared key={index} turn={turn} names={chosen} models={models} isRunning={comparison.isRunning && turn === last} />
            ))}
          </div>
        )}
      </div>
      <div className="mx-auto w-full max-w-3xl px-3 pb-3 sm:px-5">
        <ErrorNote error={comparison.error} />
        <Composer
          disabled={chosen.a === "" || chosen.b === ""}
          stream={comparison.isRunning ? { state: "running", stop: comparison.stop } : undefined}
          onSubmit={submit}
        />
      </div>
      <Dialog open={isSetting} onClose={() => setSetting(false)} title={t("chat.settings")} description={t("chat.settings_text")}>
        <ParameterForm
          settings={settings}
          onSave={(next) => {
            setSettings(next)
            setSetting(false)
          }}
        />
      </Dialog>
    </div>
  )
}

interface ComparedProps {
  turn: ComparedTurn
  names: Record<SideName, string>
  models: ModelOut[]
  isRunning: boolean
}

function Compared({ turn, names, models, isRunning }: ComparedProps) {
  return (
    <section className="mb-4">
      <MessageView message={{ role: "user", content: turn.question }} />
      <div className="grid gap-3 sm:grid-cols-2">
        {SIDES.map((side) => (
          <Answer key={side} side={side} answer={turn[side]} model={models.find(({ id }) => String(id) === names[side])} isRunning={isRunning} />
        ))}
      </div>
    </section>
  )
}

function Answer({ side, answer, model, isRunning }: { side: SideName; answer: Side; model: ModelOut | undefined; isRunning: boolean }) {
  const { t } = useWords()
  const isOpen = isRunning && answer.done === null && answer.error === null
  return (
    <section aria-label={t("compare.answer", { side: side.toUpperCase(), model: model?.name ?? "" })} className="card min-w-0 px-4 py-1">
      <p className="truncate border-b border-line py-2 text-sm font-medium">
        <span className="mr-2 text-muted uppercase">{side}</span>
        {model?.name}
      </p>
      <MessageView
        streaming={isOpen}
        message={{ role: "assistant", content: answer.text }}
        footer={
          <>
            {isOpen && answer.text === "" && <Waiting phase={answer.phase} />}
            {answer.done && (
              <span className="text-xs text-muted">
                <AnswerFacts message={{ ...answer.done, worker_name: answer.done.worker_name ?? null }} models={[]} />
              </span>
            )}
            {!isOpen && !answer.done && !answer.error && <span className="text-xs text-muted">{t("chat.stopped")}</span>}
            <ErrorNote error={answer.error} />
          </>
        }
      />
    </section>
  )
}

/** Those of the address, else the newest fine-tune beside its base, else the first two. */
function chosenModels(ready: ModelOut[], query: URLSearchParams): Record<SideName, string> {
  const known = (id: string | null) => (ready.some((model) => String(model.id) === id) ? id : null)
  const newest = [...ready].sort((x, y) => y.created_at.localeCompare(x.created_at))
  const tuned = newest.find(({ base_model_id }) => base_model_id !== null && ready.some(({ id }) => id === base_model_id))
  const b = known(query.get("b")) ?? String(tuned?.id ?? newest[0]?.id ?? "")
  const base = ready.find(({ id }) => String(id) === b)?.base_model_id
  const a = known(query.get("a")) ?? String(base ?? newest.find(({ id }) => String(id) !== b)?.id ?? b)
  return { a, b }
}
