import { patch, post } from "~/api/http"
import { client, useRefresh } from "~/api/queries"
import type { MoveIn, Priority, QueuedJob, QueueOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { problemText } from "~/parts/ErrorNote"
import { notify } from "~/state/notices"
import { moved, wayBack } from "./queue_order"

export const QUEUE = { limit: 200 } as const
const KEY = ["queue", QUEUE]

/** Moves and weighs waiting jobs: shown at once, taken back where the hub refuses, undone on request. */
export function useQueueActions() {
  const { t, phrase } = useWords()
  const refresh = useRefresh()
  const attempt = async (work: () => Promise<unknown>, done: string, undo: (() => Promise<unknown>) | null) => {
    try {
      await work()
      notify({ text: done, ...(undo && { undo: () => undo().finally(() => refresh("queue")) }) })
    } catch (error) {
      notify({ text: problemText(error, t, phrase), isBad: true })
    }
    refresh("queue")
  }
  const move = async (one: QueuedJob, place: MoveIn) => {
    const before = client.getQueryData<QueueOut>(KEY)
    if (!before) return
    const back = wayBack(before.items, one.job.id)
    const path = `/queue/${one.job.id}/move`
    await client.cancelQueries({ queryKey: KEY })
    client.setQueryData<QueueOut>(KEY, { ...before, items: moved(before.items, one.job.id, place) })
    await attempt(() => post(path, place), t("queue.moved", { name: one.job.name }), back && (() => post(path, back)))
  }
  const setPriority = (one: QueuedJob, priority: Priority) => {
    const path = `/queue/${one.job.id}`
    return attempt(
      () => patch(path, { priority }),
      t("queue.priority_set", { name: one.job.name, priority: t(`priority.${priority}`) }),
      () => patch(path, { priority: one.job.priority }),
    )
  }
  return { move, setPriority }
}
