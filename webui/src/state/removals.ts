import { useSyncExternalStore } from "react"
import { apiUrl, csrfToken, remove } from "~/api/http"
import { notify } from "./notices"
import { makeWatchers } from "./watchers"

/** A little longer than the notice with its undo is shown. */
const WAIT = 11_000

interface Removal {
  timer: ReturnType<typeof setTimeout>
  done: () => Promise<unknown>
}

/** What is gone from the page but not yet from the hub, by its path. */
const waiting = new Map<string, Removal>()
let shown: readonly string[] = []
const watchers = makeWatchers()

function tell(): void {
  shown = [...waiting.keys()]
  watchers.tell()
}

/** Takes something away at once and deletes it a moment later, unless one wants it back. */
export function removeLater(path: string, text: string, done: () => Promise<unknown>): void {
  const timer = setTimeout(() => void carryOut(path), WAIT)
  waiting.set(path, { timer, done })
  tell()
  notify({
    text,
    undo: () => {
      clearTimeout(timer)
      waiting.delete(path)
      tell()
      return Promise.resolve()
    },
  })
}

async function carryOut(path: string): Promise<void> {
  const removal = waiting.get(path)
  if (!removal) return
  try {
    await remove(path)
  } catch {
    // It is back in the list then, where it can be tried again.
  }
  // First the fresh list, so that it does not show up again.
  await removal.done()
  waiting.delete(path)
  tell()
}

/** The paths that are to be left out of what is shown. */
export function useRemovals(): readonly string[] {
  return useSyncExternalStore(watchers.subscribe, () => shown)
}

// Who leaves the page has had the chance to undo.
addEventListener("pagehide", () => {
  for (const [path, { timer }] of waiting) {
    clearTimeout(timer)
    void fetch(apiUrl(path), { method: "DELETE", keepalive: true, credentials: "same-origin", headers: { "X-CSRF-Token": csrfToken() } })
  }
  waiting.clear()
})
