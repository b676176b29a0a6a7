import { useSyncExternalStore } from "react"
import { ApiProblem, randomKey, send } from "~/api/http"
import { client } from "~/api/queries"
import { readEvents, type ServerEvent } from "~/api/sse"
import type { ConversationDetail, DoneEvent, MessageIn, PhaseEvent } from "~/api/types.gen"
import { makeWatchers } from "./watchers"

/** An answer that is being written. Lives outside the page, so that it goes on when one looks elsewhere. */
export interface ChatStream {
  /** What was sent: a question after a message, or a question's id that is answered anew. */
  body: MessageIn
  text: string
  phase: PhaseEvent | null
  state: "running" | "stopped" | "failed"
  error: unknown
  stop: () => void
}

const streams = new Map<number, ChatStream>()
const watchers = makeWatchers()
let scheduled = false

function tell(): void {
  if (scheduled) return
  scheduled = true
  // One drawing for all tokens of a frame; a page in the background has no frames.
  const draw = () => {
    scheduled = false
    watchers.tell()
  }
  if (document.hidden) setTimeout(draw, 50)
  else requestAnimationFrame(draw)
}

function put(id: number, change: Partial<ChatStream>): void {
  const known = streams.get(id)
  if (known) streams.set(id, { ...known, ...change })
  tell()
}

export function useChatStream(id: number | null): ChatStream | undefined {
  return useSyncExternalStore(watchers.subscribe, () => (id === null ? undefined : streams.get(id)))
}

export function dismissStream(id: number): void {
  streams.delete(id)
  tell()
}

/** Asks, and writes the answer as it comes; ends with the conversation as the hub has kept it. */
export async function ask(id: number, body: MessageIn): Promise<void> {
  const control = new AbortController()
  const answeredBefore = lastAnswer(id)
  streams.set(id, { body, text: "", phase: null, state: "running", error: null, stop: () => control.abort() })
  tell()
  try {
    const response = await send("POST", `/conversations/${id}/messages`, {
      body,
      signal: control.signal,
      headers: { Accept: "text/event-stream", "Idempotency-Key": randomKey() },
    })
    // The question is stored by now, and has named the conversation.
    void client.invalidateQueries({ queryKey: ["conversations", "list"] })
    for await (const event of readEvents(response)) apply(id, event)
    await reload(id)
    streams.delete(id)
  } catch (error) {
    if (control.signal.aborted) await afterStop(id, answeredBefore)
    else put(id, { state: "failed", error })
    void reload(id)
  }
  tell()
}

function apply(id: number, { event, data }: ServerEvent): void {
  const value = JSON.parse(data) as unknown
  if (event === "token") put(id, { text: (streams.get(id)?.text ?? "") + (value as { text: string }).text })
  else if (event === "phase") put(id, { phase: value as PhaseEvent })
  else if (event === "error") throw problemOf(value as Partial<ApiProblem>)
  else if (event === "done") put(id, { phase: doneAsPhase(value as DoneEvent) })
}

function problemOf({ status, code, title, detail, errors }: Partial<ApiProblem>): ApiProblem {
  return new ApiProblem(status ?? 500, code ?? "unknown", title ?? "", detail ?? "", errors ?? [])
}

function doneAsPhase(done: DoneEvent): PhaseEvent {
  return { phase: "generating", done: null, total: null, worker_name: done.worker_name ?? null, about_seconds: null }
}

async function reload(id: number): Promise<void> {
  await client.invalidateQueries({ queryKey: ["conversations"] })
  await client.refetchQueries({ queryKey: ["conversations", String(id)] })
}

/** When the newest answer that is known was given; ids may come again after an answer was replaced. */
function lastAnswer(id: number): string | undefined {
  const known = client.getQueryData<ConversationDetail>(["conversations", String(id), {}])
  return known?.messages.findLast(({ role }) => role === "assistant")?.created_at
}

/** The hub keeps what was written up to the stop, but only once the agent has stopped too: look again until it has. */
async function afterStop(id: number, answeredBefore: string | undefined): Promise<void> {
  put(id, { state: "stopped" })
  for (const wait of [200, 600, 1500, 3000]) {
    await new Promise((resolve) => setTimeout(resolve, wait))
    await reload(id)
    if (lastAnswer(id) !== answeredBefore) break
  }
  streams.delete(id)
}
