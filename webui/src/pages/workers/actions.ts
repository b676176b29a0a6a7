import { post, patch } from "~/api/http"
import { storeAllFresh, storeFresh } from "~/api/queries"
import type { WorkerOut, WorkerPatch } from "~/api/types.gen"
import { useWords, type Key } from "~/i18n"
import { problemText } from "~/parts/ErrorNote"
import { notify } from "~/state/notices"

export type Verb = "pause" | "drain" | "resume"

const DONE = { pause: "workers.paused", drain: "workers.drained", resume: "workers.resumed" } as const satisfies Record<Verb, Key>

/** What may be asked of a machine; one that is away keeps its pause for when it is back. */
export function verbsFor({ status, paused, draining }: WorkerOut): Verb[] {
  if (paused || draining) return ["resume"]
  return status === "offline" ? ["pause"] : ["pause", "drain"]
}

async function ask(verb: Verb, workers: readonly WorkerOut[]): Promise<void> {
  const fresh = await Promise.all(workers.map(({ id }) => post<WorkerOut>(`/workers/${id}/${verb}`)))
  storeAllFresh("workers", fresh)
}

/** What brings a machine back to how it was before `verb`. */
function wayBack(verb: Verb, before: WorkerOut): Verb {
  if (verb !== "resume") return "resume"
  return before.draining ? "drain" : "pause"
}

async function takeBack(verb: Verb, workers: readonly WorkerOut[]): Promise<void> {
  for (const back of ["pause", "drain", "resume"] as const) {
    const these = workers.filter((worker) => wayBack(verb, worker) === back)
    if (these.length > 0) await ask(back, these)
  }
}

/** Pauses, drains or resumes machines, says so and offers the way back; a refusal is said in the hub's words. */
export function useVerbs() {
  const { t, phrase } = useWords()
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
      notify({ text: problemText(error, t, phrase), isBad: true })
    }
  }
}

/** Asks for a fresh benchmark, which the machine makes once it has nothing to do. */
export function useMeasure() {
  const { t, phrase } = useWords()
  return async (worker: WorkerOut) => {
    try {
      await post(`/workers/${worker.id}/benchmark`)
      notify({ text: t(worker.current_job ? "workers.measures_later" : "workers.measures", { name: worker.name }) })
    } catch (error) {
      notify({ text: problemText(error, t, phrase), isBad: true })
    }
  }
}

export async function change(worker: WorkerOut, values: WorkerPatch): Promise<void> {
  storeFresh("workers", await patch<WorkerOut>(`/workers/${worker.id}`, values))
}
