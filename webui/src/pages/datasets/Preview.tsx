import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { ChevronLeft, ChevronRight } from "lucide-react"
import { useState } from "react"
import { get } from "~/api/http"
import { useList } from "~/api/queries"
import type { DatasetOut, ModelOut, PreviewOut, PreviewRow } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { IconButton } from "~/parts/Button"
import { ErrorNote } from "~/parts/ErrorNote"
import { Segmented, Select } from "~/parts/Field"
import { MessageList, type ShownMessage } from "~/parts/MessageView"
import { Skeletons } from "~/parts/Page"
import { TokenLegend, TokenView } from "~/parts/TokenView"
import { useUrlState } from "~/parts/url_state"

type View = "messages" | "rendered" | "raw"
const PAGE = 10

export function Preview({ dataset }: { dataset: DatasetOut }) {
  const { t, format } = useWords()
  const [params, change] = useUrlState()
  const [offset, setOffset] = useState(0)
  const view = (params.get("view") as View | null) ?? (dataset.needs_mapping ? "raw" : "messages")
  const models = (useList<ModelOut>("/models").data?.items ?? []).filter((model) => model.state === "ready")
  const modelId = params.get("model") ?? String(models[0]?.id ?? "")
  const set = (name: string, value: string) => change({ [name]: value }, { replace: true })
  const query = { offset, limit: PAGE, model_id: view === "rendered" ? modelId : "" }
  const preview = useQuery({
    queryKey: ["datasets", String(dataset.id), "preview", query, dataset.mapping],
    queryFn: ({ signal }) => get<PreviewOut>(`/datasets/${dataset.id}/preview`, query, signal),
    placeholderData: keepPreviousData,
    enabled: view !== "rendered" || modelId !== "",
  })
  const total = preview.data?.total ?? null
  const shown = preview.data?.items ?? []
  return (
    <div>
      <div className="mb-3 flex flex-wrap items-center gap-3">
        <Segmented<View>
          label={t("preview.view")}
          value={view}
          onChange={(next) => set("view", next)}
          options={[
            { value: "messages", label: t("preview.messages") },
            { value: "rendered", label: t("preview.rendered") },
            { value: "raw", label: t("preview.raw") },
          ]}
        />
        {view === "rendered" && models.length > 0 && (
          <Select className="!w-auto max-w-full" aria-label={t("preview.model")} value={modelId} onChange={(event) => set("model", event.target.value)}>
            {models.map((model) => (
              <option key={model.id} value={model.id}>
                {model.name}
              </option>
            ))}
          </Select>
        )}
        <div className="ml-auto flex items-center gap-1">
          <span className="num mr-1 text-sm text-muted">
            {shown.length > 0 &&
              t("preview.range", { from: offset + 1, to: offset + shown.length, total: total === null ? "?" : format.number(total) })}
          </span>
          <IconButton label={t("table.previous")} disabled={offset === 0} onClick={() => setOffset(Math.max(0, offset - PAGE))}>
            <ChevronLeft size={18} aria-hidden />
          </IconButton>
          <IconButton label={t("table.next")} disabled={isLastPage(offset, shown.length, total)} onClick={() => setOffset(offset + PAGE)}>
            <ChevronRight size={18} aria-hidden />
          </IconButton>
        </div>
      </div>
      {view === "rendered" && models.length === 0 && <p className="card p-6 text-center text-sm text-muted">{t("preview.needs_model")}</p>}
      {view === "rendered" && preview.data?.template === "default" && <p className="mb-3 text-sm text-muted">{t("preview.default_template")}</p>}
      <ErrorNote error={preview.error} />
      {preview.isLoading && <Skeletons rows={4} height={110} />}
      {view === "rendered" && shown.some(({ tokens }) => tokens) && <TokenLegend />}
      <div className="space-y-3">
        {shown.map((row) => (
          <article key={row.row} className="card min-w-0 px-4 py-3">
            <h2 className="num text-xs text-muted">{t("preview.row", { row: row.row })}</h2>
            <RowView row={row} view={view} />
          </article>
        ))}
      </div>
    </div>
  )
}

function isLastPage(offset: number, count: number, total: number | null): boolean {
  return total === null ? count < PAGE : offset + count >= total
}

function RowView({ row, view }: { row: PreviewRow; view: View }) {
  const { t } = useWords()
  if (view === "raw") return <Raw value={row.raw} />
  if (row.problem) {
    return (
      <>
        <p className="my-1 text-sm text-bad">{row.problem}</p>
        <Raw value={row.raw} />
      </>
    )
  }
  if (view === "rendered") {
    if (row.tokens) return <TokenView tokens={row.tokens} />
    return <pre className="font-mono text-[13px] whitespace-pre-wrap">{row.rendered ?? row.text ?? t("preview.not_rendered")}</pre>
  }
  return (
    <>
      {row.messages && <MessageList messages={row.messages as unknown as ShownMessage[]} />}
      {row.text !== null && row.text !== undefined && <div className="py-2 break-words whitespace-pre-wrap">{row.text}</div>}
      {row.chosen && <Answer title={t("preview.chosen")} messages={row.chosen as unknown as ShownMessage[]} />}
      {row.rejected && <Answer title={t("preview.rejected")} messages={row.rejected as unknown as ShownMessage[]} />}
    </>
  )
}

function Answer({ title, messages }: { title: string; messages: ShownMessage[] }) {
  return (
    <section className="mt-2">
      <h3 className="text-xs font-semibold text-muted">{title}</h3>
      <MessageList messages={messages} />
    </section>
  )
}

function Raw({ value }: { value: unknown }) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2)
  return <pre tabIndex={0} className="mt-1 max-h-96 overflow-auto font-mono text-[13px] break-words whitespace-pre-wrap">{text}</pre>
}
