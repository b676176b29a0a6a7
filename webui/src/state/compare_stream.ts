import { useSyncExternalStore } from "react"
import { ApiProblem, send } from "~/api/http"
import { readEvents, type ServerEvent } from "~/api/sse"
import type { ChatTurn, CompareIn, DoneEvent, PhaseEvent, SamplingIn } from "~/api/types.gen"
import { makeWatchers } from "./watchers"

export type SideName = "a" | "b"
export const SIDES: SideName[] = ["a", "b"]

/** One answer of two. */
export interface Side {
  text: string
  phase: PhaseEvent | null
  done: DoneEvent | null
  error: unknown
}

export interface ComparedTurn {
  question: string
  a: Side
  b: Side
}

export interface Comparison {
  turns: ComparedTurn[]
  isRunning: boolean
  error: unknown
  stop: () => void
}

const NOTHING: Comparison = { turns: [], isRunning: false, error: null, stop: () => undefined }
const EMPTY: Side = { text: "", phase: null, done: null, error: null }

// One for the page: it goes on when one looks elsewhere, and is gone with a reload.
let comparison = NOTHING
const watchers = makeWatchers()
let scheduled = false

function put(change: Partial<Comparison>): void {
  comparison = { ...comparison, ...change }
  if (scheduled) return
  scheduled = true
  const draw = () => {
    scheduled = false
    watchers.tell()
  }
  if (document.hidden) setTimeout(draw, 50)
  else requestAnimationFrame(draw)
}

export function useComparison(): Comparison {
  return useSyncExternalStore(watchers.subscribe, () => comparison)
}

export function clearComparison(): void {
  comparison.stop()
  put(NOTHING)
}

/** Asks both; each goes on from its own answers. */
export async function compare(modelIds: [number, number], question: string, system: string, params: SamplingIn): Promise<void> {
  const control = new AbortController()
  const messages = (side: SideName) => historyOf(comparison.turns, side, question, system)
  const body: CompareIn = { model_ids: modelIds, messages: messages("a"), messages_b: messages("b"), params }
  put({ turns: [...comparison.turns, { question, a: EMPTY, b: EMPTY }], isRunning: true, error: null, stop: () => control.abort() })
  try {
    const response = await send("POST", "/compare", { body, signal: control.signal, headers: { Accept: "text/event-stream" } })
    for await (const event of readEvents(response)) if (!control.signal.aborted) apply(event)
  } catch (error) {
    if (!control.signal.aborted) put({ error, turns: withoutEmptyTurn(comparison.turns) })
  }
  if (!control.signal.aborted) put({ isRunning: false })
  else if (comparison.isRunning) put({ isRunning: false, turns: withoutEmptyTurn(comparison.turns) })
}

function apply({ event, data }: ServerEvent): void {
  const { side, ...value } = JSON.parse(data) as { side: SideName; text?: string }
  const turns = comparison.turns.map((turn, index) => (index === comparison.turns.length - 1 ? { ...turn, [side]: changed(turn[side], event, value) } : turn))
  put({ turns })
}

function changed(side: Side, event: string, value: { text?: string }): Side {
  if (event === "token") return { ...side, text: side.text + (value.text ?? "") }
  if (event === "phase") return { ...side, phase: value as PhaseEvent }
  if (event === "done") return { ...side, done: value as unknown as DoneEvent }
  if (event === "error") return { ...side, error: problemOf(value as Partial<ApiProblem>) }
  return side
}

function problemOf({ status, code, title, detail, errors }: Partial<ApiProblem>): ApiProblem {
  return new ApiProblem(status ?? 500, code ?? "unknown", title ?? "", detail ?? "", errors ?? [])
}

/** A question that neither has answered a word of is asked anew, not left standing. */
function withoutEmptyTurn(turns: ComparedTurn[]): ComparedTurn[] {
  const last = turns[turns.length - 1]
  return last && !last.a.text && !last.b.text ? turns.slice(0, -1) : turns
}

function historyOf(turns: ComparedTurn[], side: SideName, question: string, system: string): [ChatTurn, ...ChatTurn[]] {
  const said = turns.flatMap((turn): ChatTurn[] => [
    { role: "user", content: turn.question },
    ...(turn[side].text ? [{ role: "assistant", content: turn[side].text } as const] : []),
  ])
  const first: ChatTurn[] = system ? [{ role: "system", content: system }] : []
  return [...first, ...said, { role: "user", content: question }] as unknown as [ChatTurn, ...ChatTurn[]]
}
