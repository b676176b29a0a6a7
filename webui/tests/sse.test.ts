import { describe, expect, it } from "vitest"
import { EventParser, readEvents } from "~/api/sse"

describe("server-sent events", () => {
  it("waits for the end of an event, wherever the text is cut", () => {
    const parser = new EventParser()
    expect(parser.push("event: tok")).toEqual([])
    expect(parser.push('en\ndata: {"text":"a"}\n')).toEqual([])
    expect(parser.push("\nevent: done\ndata: {}\n\n")).toEqual([
      { event: "token", data: '{"text":"a"}' },
      { event: "done", data: "{}" },
    ])
  })

  it("joins data lines, skips comments and reads other line ends", () => {
    const parser = new EventParser()
    expect(parser.push(": keep-alive\n\n")).toEqual([])
    expect(parser.push("data: one\r\ndata: two\r\n\r\n")).toEqual([{ event: "message", data: "one\ntwo" }])
    expect(parser.push("event: x\n\n")).toEqual([])
  })

  it("does not cut a character that arrives in two pieces", async () => {
    const bytes = new TextEncoder().encode("event: token\ndata: é\n\n")
    const cut = bytes.indexOf(0xc3) + 1
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(bytes.slice(0, cut))
        controller.enqueue(bytes.slice(cut))
        controller.close()
      },
    })
    const events = []
    for await (const event of readEvents(new Response(stream))) events.push(event)
    expect(events).toEqual([{ event: "token", data: "é" }])
  })
})
