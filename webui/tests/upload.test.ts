import { beforeEach, describe, expect, it, vi } from "vitest"
import { sha256 } from "~/api/digest"
import { ApiProblem } from "~/api/http"
import type { PartOut, UploadOut } from "~/api/types.gen"
import { FileUpload, WrongFile, type SendPart } from "~/api/upload"
import { isSameFile, missingParts, partRange, rememberedUploads } from "~/api/upload_store"

const PART = 4
const content = "abcdefghij"
const file = () => new File([content], "rows.jsonl")

/** A hub that keeps parts in memory and answers as the API does. */
class TinyHub {
  parts = new Map<number, PartOut>()
  completed = 0
  upload: UploadOut = {
    id: 7, filename: "rows.jsonl", size: content.length, purpose: "dataset", part_size: PART, parts_total: 3,
    status: "open", direct: false, sha256: null, expires_at: "2026-12-01T00:00:00Z", received: [],
  }
  sent: number[] = []
  failures = new Map<number, ApiProblem[]>()

  answer = async (url: string, init: RequestInit): Promise<Response> => {
    const json = (body: unknown) => new Response(JSON.stringify(body))
    if (url.endsWith("/uploads") || url.endsWith("/uploads/7")) return json({ ...this.upload, received: [...this.parts.values()] })
    if (url.endsWith("/complete")) {
      this.completed += 1
      return json({ ...this.upload, status: "complete" })
    }
    if (url.endsWith("/datasets")) return json({ id: 3, name: (JSON.parse(String(init.body)) as { name: string }).name })
    throw new Error(`unexpected ${url}`)
  }

  put: SendPart = async (_id, n, part) => {
    this.sent.push(n)
    const failure = this.failures.get(n)?.shift()
    if (failure) throw failure
    const stored = { n, size: part.size, sha256: await sha256(part) }
    this.parts.set(n, stored)
    return stored
  }
}

const by = (send: SendPart) => ({ send, firstWait: 1 })

let hub: TinyHub
beforeEach(() => {
  hub = new TinyHub()
  localStorage.clear()
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => hub.answer(url, init))
})

describe("parts", () => {
  it("cover the file, the last one shorter", () => {
    expect([1, 2, 3].map((n) => partRange({ part_size: 4, size: 10 }, n))).toEqual([[0, 4], [4, 8], [8, 10]])
  })
  it("are asked for only where the hub has none", () => {
    expect(missingParts({ parts_total: 3, received: [{ n: 2, size: 4, sha256: "" }] })).toEqual([1, 3])
  })
  it("tell whether a file is the same", async () => {
    const received = [{ n: 1, size: 4, sha256: await sha256(new Blob(["abcd"])) }]
    const upload = { size: 10, part_size: 4, received }
    expect(await isSameFile(upload, file(), sha256)).toBe(true)
    expect(await isSameFile(upload, new Blob(["abcX567890"]), sha256)).toBe(false)
    expect(await isSameFile(upload, new Blob(["abcd"]), sha256)).toBe(false)
  })
})

describe("uploading", () => {
  it("sends every part once and becomes a dataset", async () => {
    const upload = new FileUpload(file(), "Rows", 1, null, by(hub.put))
    await upload.run()
    expect(upload.state).toBe("done")
    expect(upload.dataset?.name).toBe("Rows")
    expect(hub.sent.sort()).toEqual([1, 2, 3])
    expect(rememberedUploads()).toEqual([])
  })

  it("goes on after a reload with the parts that are missing", async () => {
    hub.parts.set(1, { n: 1, size: 4, sha256: await sha256(new Blob(["abcd"])) })
    const upload = new FileUpload(file(), "Rows", 1, 7, by(hub.put))
    await upload.run()
    expect(upload.state).toBe("done")
    expect(hub.sent.sort()).toEqual([2, 3])
  })

  it("refuses to go on with another file", async () => {
    hub.parts.set(1, { n: 1, size: 4, sha256: await sha256(new Blob(["WXYZ"])) })
    const upload = new FileUpload(file(), "Rows", 1, 7, by(hub.put))
    await upload.run()
    expect(upload.state).toBe("failed")
    expect(upload.error).toBeInstanceOf(WrongFile)
    expect(hub.sent).toEqual([])
  })

  it("repeats a part that the network lost, and stops at a refusal", async () => {
    hub.failures.set(2, [new ApiProblem(0, "network", "", ""), new ApiProblem(503, "unavailable", "", "")])
    const upload = new FileUpload(file(), "Rows", 1, null, by(hub.put))
    await upload.run()
    expect(upload.state).toBe("done")
    expect(hub.sent.filter((n) => n === 2)).toHaveLength(3)

    hub = new TinyHub()
    hub.failures.set(1, [new ApiProblem(413, "too_large", "", "The file is too large.")])
    const refused = new FileUpload(file(), "Rows", 1, null, by(hub.put))
    await refused.run()
    expect(refused.state).toBe("failed")
    expect(rememberedUploads()).toHaveLength(1)
  })

  it("pauses with what it has, and goes on", async () => {
    const pausing: SendPart = async (id, n, part, onSent, signal) => {
      if (n === 1) return hub.put(id, n, part, onSent, signal)
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(new DOMException("", "AbortError"))))
    }
    let send = pausing
    const upload = new FileUpload(file(), "Rows", 1, null, by((...all) => send(...all)))
    const run = upload.run()
    await vi.waitFor(() => expect(hub.parts.size).toBe(1))
    upload.pause()
    await run
    expect(upload.state).toBe("paused")
    send = hub.put
    await upload.run()
    expect(upload.state).toBe("done")
    expect(hub.sent.sort()).toEqual([1, 2, 3])
  })
})
