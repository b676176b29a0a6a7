import type { WorkerOut, WorkersSummary, WorkerStatus } from "~/api/types.gen"

/** How much of something is used: `share` from 0 to 1, `used` and `total` in bytes. */
export interface Share {
  share: number
  used: number
  total: number
}

/** What a machine computes on: its GPU, else its processor. */
export function deviceOf({ hardware, device }: WorkerOut): string {
  return hardware?.gpu ?? hardware?.cpu ?? device ?? ""
}

/** Figures of a machine that is away are old, and shown as missing. */
function metricsOf({ status, metrics }: WorkerOut) {
  return status === "offline" ? null : metrics
}

/** From 0 to 1; undefined where there is no GPU. */
export function gpuOf(worker: WorkerOut): number | undefined {
  return fraction(metricsOf(worker)?.gpu_utilization)
}

export function cpuOf(worker: WorkerOut): number | undefined {
  return fraction(metricsOf(worker)?.cpu)
}

export function vramOf(worker: WorkerOut): Share | undefined {
  const metrics = metricsOf(worker)
  return shareOf(metrics?.vram_used, metrics?.vram_total ?? worker.hardware?.vram_total)
}

export function ramOf(worker: WorkerOut): Share | undefined {
  const metrics = metricsOf(worker)
  return shareOf(metrics?.ram, metrics?.ram_total ?? worker.hardware?.ram)
}

function fraction(percent: number | null | undefined): number | undefined {
  return typeof percent === "number" ? percent / 100 : undefined
}

function shareOf(used: number | null | undefined, total: number | null | undefined): Share | undefined {
  if (typeof used !== "number" || !total) return undefined
  return { share: used / total, used, total }
}

/** The five figures of the page, of the machines at hand; utilisation in percent over those online that have a GPU. */
export function summaryOf(workers: readonly WorkerOut[]): WorkersSummary {
  const online = workers.filter(({ status }) => status !== "offline")
  const use = online.flatMap((worker) => worker.metrics?.gpu_utilization ?? [])
  const count = (status: WorkerStatus) => workers.filter((worker) => worker.status === status).length
  return {
    total: workers.length,
    online: online.length,
    training: count("training"),
    idle: count("idle"),
    avg_gpu_utilization: use.length > 0 ? use.reduce((sum, one) => sum + one, 0) / use.length : null,
  }
}

/** `online` is every state but offline. */
export type StateFilter = WorkerStatus | "online"

export function hasState(worker: WorkerOut, filter: string | null): boolean {
  if (!filter) return true
  return filter === "online" ? worker.status !== "offline" : worker.status === filter
}
