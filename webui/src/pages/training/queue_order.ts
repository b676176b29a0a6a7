import type { MoveIn, QueuedJob } from "~/api/types.gen"

/** Jobs are moved among those of one person and priority: these, in their order. */
function groupOf(items: readonly QueuedJob[], one: QueuedJob): QueuedJob[] {
  return items.filter(({ job }) => job.user_id === one.job.user_id && job.priority === one.job.priority)
}

function find(items: readonly QueuedJob[], id: number): QueuedJob | undefined {
  return items.find(({ job }) => job.id === id)
}

/** The place one step up (-1) or down (1), or null at the end of its group. */
export function stepFrom(items: readonly QueuedJob[], id: number, step: -1 | 1): MoveIn | null {
  const one = find(items, id)
  if (!one) return null
  const group = groupOf(items, one)
  const neighbour = group[group.indexOf(one) + step]
  if (!neighbour) return null
  return step === -1 ? { before_id: neighbour.job.id } : { after_id: neighbour.job.id }
}

/** The place that dropping `id` on `target` means: before it when dragged up, after it when dragged down; null on itself. */
export function dropOn(items: readonly QueuedJob[], id: number, target: number): MoveIn | null {
  const from = items.findIndex(({ job }) => job.id === id)
  const to = items.findIndex(({ job }) => job.id === target)
  if (from < 0 || to < 0 || from === to) return null
  return to < from ? { before_id: target } : { after_id: target }
}

/** What brings a job back to where it is now. */
export function wayBack(items: readonly QueuedJob[], id: number): MoveIn | null {
  const one = find(items, id)
  if (!one) return null
  const group = groupOf(items, one)
  const at = group.indexOf(one)
  const next = group[at + 1]
  const before = group[at - 1]
  return next ? { before_id: next.job.id } : before ? { after_id: before.job.id } : null
}

/** The list as it will be: its group's jobs change places, those of others stay where they are. */
export function moved(items: readonly QueuedJob[], id: number, move: MoveIn): QueuedJob[] {
  const one = find(items, id)
  const anchor = find(items, move.before_id ?? move.after_id ?? 0)
  if (!one || !anchor) return [...items]
  const group = groupOf(items, one)
  if (!group.includes(anchor)) return [...items]
  const rest = group.filter((other) => other !== one)
  rest.splice(rest.indexOf(anchor) + (move.after_id ? 1 : 0), 0, one)
  const places = items.map((item) => item.position)
  return items.map((item) => (group.includes(item) ? rest.shift()! : item)).map((item, index) => ({ ...item, position: places[index]! }))
}
