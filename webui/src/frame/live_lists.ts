import { useEffect } from "react"
import { atMostEvery } from "~/api/often"
import { client, storeAllFresh, storeFresh, type Page } from "~/api/queries"
import { dashboard, type SocketEvent } from "~/api/socket"
import type { DatasetOut, ExportOut, JobOut, ModelOut, OverviewOut, ProgressOut, TrainingJobOut, WorkerMetrics, WorkerOut } from "~/api/types.gen"

type Gone = { id: number; deleted: true }

/** Keeps what is cached true while the hub tells of changes, on whatever page one is. */
export function useLiveLists(projectIds: number[]): void {
  const topics = [...projectIds.map((id) => `project:${id}`), "fleet"].join(" ")
  useEffect(() => {
    const stops = topics.split(" ").map((topic) => dashboard.subscribe(topic, apply))
    return () => stops.forEach((stop) => stop())
  }, [topics])
}

function apply(event: SocketEvent): void {
  const { data } = event
  switch (event.type) {
    case "dataset.state":
      storeFresh("datasets", data as unknown as DatasetOut | Gone)
      return outdate("overview")
    case "model.state":
      storeFresh("models", data as unknown as ModelOut | Gone)
      return outdate("overview")
    case "job.state":
      return applyJob(data as unknown as JobOut)
    case "job.progress":
      return applyProgress(data as unknown as ProgressOut & { id?: number })
    case "export.state":
      return applyExport(data as unknown as ExportOut)
    case "worker.state":
      changed.set(Number(data.id), data as unknown as WorkerOut | Gone)
      showChanged()
      // A machine that is new has used up a place of its key.
      outdate("master-keys")
      return outdate("workers", "summary")
    case "worker.metrics":
      return applyMetrics(data as unknown as { id: number; metrics: WorkerMetrics })
    case "snapshot":
      return applyFleet(data as { workers?: WorkerOut[] })
  }
}

function applyJob(job: JobOut): void {
  if (job.kind === "training") storeFresh("training-jobs", job as TrainingJobOut)
  else if (job.kind === "evaluation") outdate("evaluations")
  else if (job.kind === "export") outdate("exports")
  outdate("queue")
  outdate("overview")
}

/** How far jobs are reaches every list and the overview, without asking for them again. */
const PROGRESS_EVERY = 250
const advanced = new Map<number, ProgressOut>()

function applyProgress({ id, ...progress }: ProgressOut & { id?: number }): void {
  if (id === undefined) return
  advanced.set(id, progress)
  showProgress()
}

const showProgress = atMostEvery(PROGRESS_EVERY, () => {
  const fresh = new Map(advanced)
  advanced.clear()
  const moved = <T extends { id: number; progress: ProgressOut }>(job: T): T => (fresh.has(job.id) ? { ...job, progress: fresh.get(job.id)! } : job)
  client.setQueriesData<Page<TrainingJobOut>>({ queryKey: ["training-jobs", "list"] }, (page) => page && { ...page, items: page.items.map(moved) })
  client.setQueryData<OverviewOut>(["overview", {}], (known) => known && { ...known, running: known.running.map(moved) })
})

function applyExport(fresh: ExportOut): void {
  client.setQueryData(["exports", String(fresh.id), {}], fresh)
  outdate("exports", "list")
  outdate("models", String(fresh.model_id), "exports")
}

/** When a hub comes back, its whole fleet does so within a second. */
const STATES_EVERY = 100
const changed = new Map<number, WorkerOut | Gone>()

const showChanged = atMostEvery(STATES_EVERY, () => {
  storeAllFresh<WorkerOut>("workers", [...changed.values()])
  changed.clear()
})

/** A fleet of a thousand says two hundred times a second how it is; one does not read faster than this. */
const METRICS_EVERY = 500
const measured = new Map<number, { metrics: WorkerMetrics; last_seen_at: string }>()

function applyMetrics({ id, metrics }: { id: number; metrics: WorkerMetrics }): void {
  measured.set(id, { metrics, last_seen_at: new Date().toISOString() })
  showMetrics()
}

const showMetrics = atMostEvery(METRICS_EVERY, () => {
  const fresh = new Map(measured)
  measured.clear()
  client.setQueriesData<{ items: WorkerOut[]; total: number }>({ queryKey: ["workers", "list"] }, (page) =>
    page && { ...page, items: page.items.map((worker) => (fresh.has(worker.id) ? { ...worker, ...fresh.get(worker.id) } : worker)) },
  )
})

function applyFleet({ workers }: { workers?: WorkerOut[] }): void {
  if (workers) client.setQueriesData({ queryKey: ["workers", "list"] }, { items: workers, total: workers.length })
}

const OUTDATE_EVERY = 300
const outdated = new Map<string, () => void>()

/** Asks again for what is below a key, once for a burst of events. */
function outdate(...key: string[]): void {
  const name = key.join("/")
  const again = outdated.get(name) ?? atMostEvery(OUTDATE_EVERY, () => void client.invalidateQueries({ queryKey: key }))
  outdated.set(name, again)
  again()
}
