import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { notify } from "~/state/notices"
import { removeLater } from "~/state/removals"

vi.mock("~/state/notices", () => ({ notify: vi.fn() }))
const asked: string[] = []
beforeEach(() => {
  vi.useFakeTimers()
  asked.length = 0
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    asked.push(`${init.method} ${url}`)
    return Promise.resolve(new Response(null, { status: 204 }))
  })
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

describe("what is removed with a way back", () => {
  it("is deleted a moment later, once", async () => {
    const done = vi.fn(() => Promise.resolve())
    removeLater("/conversations/1", "gone", done)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(asked).toEqual([])
    await vi.advanceTimersByTimeAsync(2_000)
    expect(asked).toEqual(["DELETE /api/v1/conversations/1"])
    expect(done).toHaveBeenCalledOnce()
  })

  it("is not deleted when one wants it back", async () => {
    removeLater("/conversations/2", "gone", () => Promise.resolve())
    await vi.mocked(notify).mock.lastCall?.[0].undo?.()
    await vi.advanceTimersByTimeAsync(20_000)
    expect(asked).toEqual([])
  })

  it("is deleted at once when one leaves", () => {
    removeLater("/conversations/3", "gone", () => Promise.resolve())
    dispatchEvent(new Event("pagehide"))
    expect(asked).toEqual(["DELETE /api/v1/conversations/3"])
  })
})
