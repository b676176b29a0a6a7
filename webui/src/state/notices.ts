import { useSyncExternalStore } from "react"
import { makeWatchers } from "./watchers"

/** A sentence about what was just done, with the way back where there is one. */
export interface Notice {
  id: number
  text: string
  undo?: () => Promise<unknown>
  isBad?: boolean
}

const SHOWN_FOR = 10_000
const MOST = 3
let notices: readonly Notice[] = []
let lastId = 0
const watchers = makeWatchers()

function become(next: readonly Notice[]): void {
  notices = next
  watchers.tell()
}

export function notify(notice: Omit<Notice, "id">): void {
  const id = ++lastId
  become([...notices, { ...notice, id }].slice(-MOST))
  setTimeout(() => dismissNotice(id), SHOWN_FOR)
}

export function dismissNotice(id: number): void {
  become(notices.filter((notice) => notice.id !== id))
}

export function useNotices(): readonly Notice[] {
  return useSyncExternalStore(watchers.subscribe, () => notices)
}
