export interface SocketEvent {
  type: string
  topic: string
  seq?: number
  data: Record<string, unknown>
}
export type Connection = { state: "connecting" | "online" | "offline" } | { state: "waiting"; until: number }
type Listener = (event: SocketEvent) => void

const PING_EVERY = 20_000
const SILENCE_LIMIT = 50_000
const LONGEST_WAIT = 30_000
/** The hub's close codes for a session that is over: coming back would not help. */
const REFUSED = new Set([4401, 4403])

/** The one socket of the page: subscribes to what is being watched, comes back with full jitter and subscribes again. */
export class DashboardSocket {
  private socket: WebSocket | null = null
  private topics = new Map<string, Set<Listener>>()
  private watchers = new Set<() => void>()
  private tries = 0
  private timer: ReturnType<typeof setTimeout> | undefined
  private heartbeat: ReturnType<typeof setInterval> | undefined
  private lastHeard = 0
  private wanted = false
  connection: Connection = { state: "offline" }
  onRefused: () => void = () => undefined

  constructor(private readonly url: string) {
    addEventListener("online", () => this.wanted && this.retryNow())
    addEventListener("offline", () => this.socket?.close())
  }

  start(): void {
    if (this.wanted) return
    this.wanted = true
    this.open()
  }

  stop(): void {
    this.wanted = false
    clearTimeout(this.timer)
    this.socket?.close()
    this.become({ state: "offline" })
  }

  retryNow(): void {
    clearTimeout(this.timer)
    if (!this.socket) this.open()
  }

  subscribe(topic: string, listener: Listener): () => void {
    const listeners = this.topics.get(topic) ?? new Set()
    const isNew = listeners.size === 0
    this.topics.set(topic, listeners.add(listener))
    // A second listener needs the snapshot as well, and only a new subscription brings one.
    if (!isNew) this.say({ type: "unsubscribe", topics: [topic] })
    this.say({ type: "subscribe", topics: [topic] })
    return () => {
      listeners.delete(listener)
      if (listeners.size > 0) return
      this.topics.delete(topic)
      this.say({ type: "unsubscribe", topics: [topic] })
    }
  }

  watch(callback: () => void): () => void {
    this.watchers.add(callback)
    return () => this.watchers.delete(callback)
  }

  private open(): void {
    const socket = new WebSocket(this.url)
    this.socket = socket
    this.become({ state: "connecting" })
    socket.onopen = () => this.opened()
    socket.onmessage = (message) => this.heard(String(message.data))
    socket.onclose = ({ code }) => this.closed(socket, code)
  }

  private opened(): void {
    this.tries = 0
    this.lastHeard = Date.now()
    this.become({ state: "online" })
    this.subscribeAll()
    this.heartbeat = setInterval(() => this.beat(), PING_EVERY)
  }

  private beat(): void {
    if (Date.now() - this.lastHeard > SILENCE_LIMIT) this.socket?.close()
    else this.say({ type: "ping" })
  }

  private heard(text: string): void {
    this.lastHeard = Date.now()
    const found = JSON.parse(text) as SocketEvent | SocketEvent[]
    for (const event of Array.isArray(found) ? found : [found]) this.pass(event)
  }

  private pass(event: SocketEvent): void {
    if (event.type === "resubscribe") return this.subscribeAll()
    for (const listener of this.topics.get(event.topic) ?? []) listener(event)
  }

  private closed(socket: WebSocket, code: number): void {
    clearInterval(this.heartbeat)
    if (this.socket === socket) this.socket = null
    if (!this.wanted) return
    if (REFUSED.has(code)) {
      this.stop()
      return this.onRefused()
    }
    if (!navigator.onLine) return this.become({ state: "offline" })
    const wait = Math.random() * Math.min(LONGEST_WAIT, 1000 * 2 ** this.tries)
    this.tries += 1
    this.become({ state: "waiting", until: Date.now() + wait })
    this.timer = setTimeout(() => this.open(), wait)
  }

  private subscribeAll(): void {
    if (this.topics.size > 0) this.say({ type: "subscribe", topics: [...this.topics.keys()] })
  }

  private say(message: object): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message))
  }

  private become(connection: Connection): void {
    this.connection = connection
    for (const watcher of this.watchers) watcher()
  }
}

const scheme = location.protocol === "https:" ? "wss:" : "ws:"
export const dashboard = new DashboardSocket(`${scheme}//${location.host}/ws/dashboard`)
