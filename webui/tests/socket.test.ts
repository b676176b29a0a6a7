import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import type { DashboardSocket as Socket, SocketEvent } from "~/api/socket"

/** The other end of the wire. */
class Wire {
  static OPEN = 1
  static last: Wire
  readyState = Wire.OPEN
  sent: string[] = []
  onopen = (): void => undefined
  onmessage: (message: { data: string }) => void = () => undefined
  onclose: (event: { code: number }) => void = () => undefined

  constructor() {
    Wire.last = this
  }

  send(text: string): void {
    this.sent.push(text)
  }

  close(): void {
    this.onclose({ code: 1000 })
  }
}

const event = (seq: number, topic: string, type = "job.state"): SocketEvent => ({ type, topic, seq, data: {} })

describe("the dashboard's socket", () => {
  let socket: Socket
  const heard: SocketEvent[] = []

  beforeEach(async () => {
    vi.useFakeTimers()
    vi.stubGlobal("WebSocket", Wire)
    vi.stubGlobal("addEventListener", () => undefined)
    vi.stubGlobal("location", { protocol: "http:", host: "hub" })
    const { DashboardSocket } = await import("~/api/socket")
    heard.length = 0
    socket = new DashboardSocket("ws://hub/ws/dashboard")
    socket.subscribe("job:1", (found) => heard.push(found))
    socket.start()
    Wire.last.onopen()
  })

  afterEach(() => {
    socket.stop()
    vi.useRealTimers()
    vi.unstubAllGlobals()
  })

  it("takes a frame with one event", () => {
    Wire.last.onmessage({ data: JSON.stringify(event(1, "job:1")) })
    expect(heard).toEqual([event(1, "job:1")])
  })

  it("takes a frame with several, each for those who listen to its topic", () => {
    const together = [event(1, "job:1"), event(2, "job:2"), event(3, "job:1")]
    Wire.last.onmessage({ data: JSON.stringify(together) })
    expect(heard.map(({ seq }) => seq)).toEqual([1, 3])
  })

  it("subscribes again when it was too slow, also in the middle of a frame", () => {
    Wire.last.sent.length = 0
    Wire.last.onmessage({ data: JSON.stringify([event(1, "", "resubscribe"), event(2, "job:1")]) })
    expect(Wire.last.sent).toEqual([JSON.stringify({ type: "subscribe", topics: ["job:1"] })])
    expect(heard.map(({ seq }) => seq)).toEqual([2])
  })
})
