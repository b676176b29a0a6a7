import { describe, expect, it } from "vitest"
import type { WorkerLimits, WorkerMetrics, WorkerOut } from "~/api/types.gen"
import { gpuOf, hasState, ramOf, summaryOf, vramOf } from "~/pages/workers/figures"
import { draftOf, limitsOf } from "~/pages/workers/limits"
import { pointsOf } from "~/pages/workers/machine_history"
import { readSorting, writeSorting } from "~/parts/table_state"

function worker(status: string, metrics: Partial<WorkerMetrics> | null = null): WorkerOut {
  return { status, metrics, hardware: { ram: 100 } } as unknown as WorkerOut
}

describe("the figures of a fleet", () => {
  it("counts states and takes the mean over the GPUs that are online", () => {
    const fleet = [
      worker("training", { gpu_utilization: 90 }),
      worker("idle", { gpu_utilization: 10 }),
      worker("idle", { gpu_utilization: null, cpu: 70 }),
      worker("offline", { gpu_utilization: 100 }),
    ]
    expect(summaryOf(fleet)).toEqual({ total: 4, online: 3, training: 1, idle: 2, avg_gpu_utilization: 50 })
    expect(summaryOf([]).avg_gpu_utilization).toBeNull()
  })

  it("shows no old figures of a machine that is away", () => {
    expect(gpuOf(worker("offline", { gpu_utilization: 100 }))).toBeUndefined()
    expect(gpuOf(worker("idle", { gpu_utilization: 0 }))).toBe(0)
  })

  it("takes the whole from the hardware where it is not measured", () => {
    expect(ramOf(worker("idle", { ram: 25 }))).toEqual({ share: 0.25, used: 25, total: 100 })
    expect(vramOf(worker("idle", { vram_used: 5 }))).toBeUndefined()
  })

  it("filters by a state, and by being online", () => {
    expect(hasState(worker("paused"), "online")).toBe(true)
    expect(hasState(worker("offline"), "online")).toBe(false)
    expect(hasState(worker("idle"), "idle")).toBe(true)
    expect(hasState(worker("idle"), null)).toBe(true)
  })
})

describe("a machine's curves", () => {
  const at = (second: number) => ({ at: new Date(second * 1000).toISOString(), cpu: second }) as WorkerMetrics

  it("break where it was silent", () => {
    const points = pointsOf([at(0), at(5), at(1000), at(1005)], ({ cpu }) => cpu)
    expect(points.map((point) => point[2])).toEqual([0, 5, null, 1000, 1005])
  })

  it("do not break where a long time was thinned", () => {
    const points = pointsOf(Array.from({ length: 100 }, (_, step) => at(step * 300)), ({ cpu }) => cpu)
    expect(points).toHaveLength(100)
  })

  it("are empty where nothing was ever measured", () => {
    expect(pointsOf([at(0), at(5)], ({ gpu_utilization }) => gpu_utilization)).toEqual([])
  })
})

describe("an owner's limits", () => {
  it("come back from the form as they were", () => {
    const limits: WorkerLimits = {
      working_hours: [{ days: ["mon", "sun"], start: "22:00", end: "06:00", timezone: "Europe/Paris" }],
      vram_cap: 12_500_000_000,
      projects: [3],
    }
    expect(draftOf(limits, "UTC").cap).toBe("12.5")
    expect(limitsOf(draftOf(limits, "UTC"))).toEqual(limits)
  })

  it("are none where the form is empty", () => {
    expect(limitsOf(draftOf({}, "UTC"))).toEqual({ working_hours: [], vram_cap: null, projects: null })
    expect(limitsOf({ ...draftOf({}, "UTC"), cap: "8,5" }).vram_cap).toBe(8_500_000_000)
  })
})

describe("the order of a table in the URL", () => {
  it("is left out where it is the table's own", () => {
    const own = [{ id: "name", desc: false }]
    expect(writeSorting(own, own)).toBeNull()
    expect(writeSorting([{ id: "gpu", desc: true }], own)).toBe("-gpu")
    expect(readSorting("-gpu")).toEqual([{ id: "gpu", desc: true }])
    expect(readSorting(null)).toBeNull()
  })
})
