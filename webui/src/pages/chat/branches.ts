import type { MessageOut } from "~/api/types.gen"

/** Which version was chosen where there are several: by the message before them, "first" for none. */
export type Chosen = Record<string, number>

export interface Shown {
  message: MessageOut
  /** Every version that stands at this place, oldest first. */
  versions: number[]
}

export const placeOf = (parent: number | null) => (parent === null ? "first" : String(parent))

/** One branch of a conversation, from its first message on: the chosen versions, else the one on which something was said last. */
export function branchOf(messages: MessageOut[], chosen: Chosen): Shown[] {
  const children = new Map<string, MessageOut[]>()
  for (const message of messages) {
    const place = placeOf(message.parent_id)
    children.set(place, [...(children.get(place) ?? []), message])
  }
  const newest = newestBelow(messages)
  const branch: Shown[] = []
  let place = "first"
  for (;;) {
    const versions = children.get(place) ?? []
    const wanted = versions.find(({ id }) => id === chosen[place])
    const message = wanted ?? versions.reduce<MessageOut | undefined>((best, one) => (best && newest.get(best.id)! > newest.get(one.id)! ? best : one), undefined)
    if (!message) return branch
    branch.push({ message, versions: versions.filter(({ role }) => role === message.role).map(({ id }) => id) })
    place = String(message.id)
  }
}

/** The part of a branch up to a message; nothing for the time before the first one. */
export function upTo(branch: Shown[], id: number | null): Shown[] {
  return id === null ? [] : branch.slice(0, branch.findIndex(({ message }) => message.id === id) + 1)
}

/** The largest id at or below each message; those below are always stored later. */
function newestBelow(messages: MessageOut[]): Map<number, number> {
  const newest = new Map(messages.map(({ id }) => [id, id]))
  for (const { id, parent_id } of [...messages].sort((a, b) => b.id - a.id)) {
    if (parent_id !== null) newest.set(parent_id, Math.max(newest.get(parent_id) ?? 0, newest.get(id)!))
  }
  return newest
}
