import { post, patch } from "~/api/http"
import { storeAllFresh, storeFresh } from "~/api/queries"
import type { WorkerOut, WorkerPatch, WorkerStatus } from "~/api/types.gen"
import { useWords, type Key } from "~/i18n"
import { problemText } from "~/parts/ErrorNote"
import { notify } from "~/state/notices"

export type Verb = "pause" | "drain" | "resume"

const IS_HELD: ReadonlySet<WorkerStatus> = new Set(["paused", "draining"])
const DONE = { pause: "workers.paused", drain: "workers.drained", resume: "workers.resumed" } as const satisfies Record<Verb, Key>

/** What may be asked of a machine in this state. */
export function verbsFor(status: WorkerStatus): Verb[] {
  if (status === "offline") return []
  return IS_HELD.has(status) ? ["resume"] : ["pause", "drain"]
}

async function ask(verb: Verb, workers: readonly WorkerOut[]): Promise<void> {
  const fresh = await Promise.all(workers.map(({ id }) => post<WorkerOut>(`/workers/${id}/${verb}`)))
  storeAllFresh("workers", fresh)
}

/** What brings a machine back to where it was before `verb`. */
function wayBack(verb: Verb, before: WorkerStatus): Verb {
  if (verb !== "resume") return "resume"
  return before === "draining" ? "drain" : "pause"
}

async function takeBack(verb: Verb, workers: readonly WorkerOut[]): Promise<void> {
  for (const back of ["pause", "drain", "resume"] as const) {
    const these = workers.filter(({ status }) => wayBack(verb, status) === back)
    if (these.length > 0) await ask(back, these)
  }
}

/** Pauses, drains or resumes machines, says so and offers the way back; a refusal is said in the hub's words. */
export function useVerbs() {
  const { t } = useWords()
  return async (verb: Verb, workers: readonly WorkerOut[]) => {
    const [first] = workers
    if (!first) return
    try {
      await ask(verb, workers)
      notify({
        text: t(DONE[verb], { count: workers.length, name: first.name }),
        undo: () => takeBack(verb, workers),
      })
    } catch (error) {
      notify({ text: problemText(error, t), isBad: true })
    }
  }
}

export async function change(worker: WorkerOut, values: WorkerPatch): Promise<void> {
  storeFresh("workers", await patch<WorkerOut>(`/workers/${worker.id}`, values))
}
