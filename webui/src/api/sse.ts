export interface ServerEvent {
  event: string
  data: string
}

/** Cuts a stream of text into Server-Sent Events; what is not yet complete waits for the next piece. */
export class EventParser {
  private buffer = ""

  push(text: string): ServerEvent[] {
    this.buffer += text
    const events: ServerEvent[] = []
    for (;;) {
      const end = /\r\n\r\n|\n\n|\r\r(?!\n)/.exec(this.buffer)
      if (!end) return events
      const event = parseBlock(this.buffer.slice(0, end.index))
      this.buffer = this.buffer.slice(end.index + end[0].length)
      if (event) events.push(event)
    }
  }
}

function parseBlock(block: string): ServerEvent | null {
  let event = "message"
  const data: string[] = []
  for (const line of block.split(/\r\n|\n|\r/)) {
    if (line.startsWith(":")) continue
    const colon = line.indexOf(":")
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "")
    if (field === "event") event = value
    if (field === "data") data.push(value)
  }
  return data.length ? { event, data: data.join("\n") } : null
}

/** The events of a streamed answer, as they arrive. */
export async function* readEvents(response: Response): AsyncGenerator<ServerEvent> {
  if (!response.body) return
  const reader = response.body.getReader()
  const decoder = new TextDecoder()
  const parser = new EventParser()
  for (;;) {
    const { done, value } = await reader.read()
    yield* parser.push(done ? decoder.decode() : decoder.decode(value, { stream: true }))
    if (done) return
  }
}
