import { sha256 } from "./digest"
import { ApiProblem, apiUrl, csrfToken, get, parseProblem, post, remove } from "./http"
import type { DatasetOut, PartOut, UploadOut } from "./types.gen"
import { forgetUpload, isSameFile, missingParts, partRange, rememberUpload } from "./upload_store"

export type UploadState = "checking" | "sending" | "paused" | "finishing" | "done" | "failed" | "cancelled"

const AT_ONCE = 3
const TRIES = 5

export type SendPart = (uploadId: number, n: number, part: Blob, onSent: (bytes: number) => void, signal: AbortSignal) => Promise<PartOut>

/** How a part is sent, and how long the first of the growing waits between tries is, in milliseconds. */
export interface Transport {
  send: SendPart
  firstWait: number
}

/** One file on its way to become a dataset: several parts at once, each checked, with pause, retry and resume. */
export class FileUpload {
  state: UploadState = "checking"
  error: unknown = null
  dataset: DatasetOut | null = null
  private upload: UploadOut | null = null
  private stored = 0
  private readonly inFlight = new Map<number, number>()
  private control = new AbortController()
  private readonly watchers = new Set<() => void>()
  private startedAt = 0
  private storedAtStart = 0
  version = 0
  protected readonly purpose: "dataset" | "model" = "dataset"

  constructor(
    readonly file: File,
    readonly name: string,
    readonly projectId: number | null,
    private readonly resumeId: number | null = null,
    private readonly transport: Transport = { send: sendByRequest, firstWait: 1000 },
  ) {}

  watch(callback: () => void): () => void {
    this.watchers.add(callback)
    return () => this.watchers.delete(callback)
  }

  get sent(): number {
    return this.stored + [...this.inFlight.values()].reduce((sum, bytes) => sum + bytes, 0)
  }

  /** Bytes a second since this run began. */
  get rate(): number | null {
    const seconds = (Date.now() - this.startedAt) / 1000
    return this.state === "sending" && seconds > 1 ? (this.sent - this.storedAtStart) / seconds : null
  }

  async run(): Promise<void> {
    this.control = new AbortController()
    this.error = null
    try {
      this.become("checking")
      const upload = await this.open()
      this.become("sending")
      await this.sendMissing(upload)
      this.become("finishing")
      await this.finish(upload)
      this.become("done")
    } catch (error) {
      if (this.control.signal.aborted) return
      this.control.abort()
      this.error = error
      this.become("failed")
    }
  }

  pause(): void {
    this.control.abort()
    this.inFlight.clear()
    this.become("paused")
  }

  async cancel(): Promise<void> {
    this.control.abort()
    this.become("cancelled")
    if (!this.upload) return
    forgetUpload(this.upload.id)
    await remove(`/uploads/${this.upload.id}`)
  }

  /** A new upload, or the one that was interrupted, if this is the same file. */
  private async open(): Promise<UploadOut> {
    const knownId = this.upload?.id ?? this.resumeId
    const { name, size } = this.file
    const upload =
      knownId === null
        ? await post<UploadOut>("/uploads", { filename: name, size, purpose: this.purpose })
        : await get<UploadOut>(`/uploads/${knownId}`)
    if (this.upload === null && knownId !== null && !(await isSameFile(upload, this.file, sha256))) throw new WrongFile(upload.filename)
    this.upload = upload
    this.stored = (upload.received ?? []).reduce((sum, part) => sum + part.size, 0)
    this.storedAtStart = this.stored
    this.startedAt = Date.now()
    this.remember(upload)
    return upload
  }

  private async sendMissing(upload: UploadOut): Promise<void> {
    const waiting = missingParts(upload)
    const lane = async (): Promise<void> => {
      for (let n = waiting.shift(); n !== undefined; n = waiting.shift()) await this.sendOne(upload, n)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, lane))
  }

  private async sendOne(upload: UploadOut, n: number): Promise<void> {
    const part = this.file.slice(...partRange(upload, n))
    const digest = await sha256(part)
    const { signal } = this.control
    for (let attempt = 1; ; attempt++) {
      signal.throwIfAborted()
      try {
        const answer = await this.transport.send(upload.id, n, part, (bytes) => this.moved(n, bytes), signal)
        if (answer.sha256 !== digest) throw new ApiProblem(0, "network", "", "")
        this.inFlight.delete(n)
        this.stored += part.size
        return this.tell()
      } catch (error) {
        this.moved(n, 0)
        if (signal.aborted || attempt >= TRIES || !isWorthRetrying(error)) throw error
        await pause(this.transport.firstWait * 2 ** (attempt - 1) * (0.5 + Math.random()), signal)
      }
    }
  }

  /** So that it can go on after the page was left. */
  protected remember(upload: UploadOut): void {
    rememberUpload({ id: upload.id, filename: upload.filename, size: this.file.size, name: this.name, projectId: this.projectId })
  }

  protected async finish(upload: UploadOut): Promise<void> {
    if (upload.status !== "complete") await post<UploadOut>(`/uploads/${upload.id}/complete`, {})
    this.dataset = await post<DatasetOut>("/datasets", {
      name: this.name,
      upload_id: upload.id,
      ...(this.projectId !== null && { project_id: this.projectId }),
    })
    forgetUpload(upload.id)
  }

  private moved(n: number, bytes: number): void {
    this.inFlight.set(n, bytes)
    this.tell()
  }

  private become(state: UploadState): void {
    if (this.state !== "cancelled") this.state = state
    this.tell()
  }

  private tell(): void {
    this.version += 1
    for (const watcher of this.watchers) watcher()
  }
}

/** One of the files of which a model is made once all are there. */
export class ModelFileUpload extends FileUpload {
  protected override readonly purpose = "model"
  /** Set once the file is complete. */
  uploadId: number | null = null

  constructor(file: File) {
    super(file, file.name, null)
  }

  protected override remember(): void {
    // A model is made of several files; where the page was left they are picked anew.
  }

  protected override async finish(upload: UploadOut): Promise<void> {
    await post<UploadOut>(`/uploads/${upload.id}/complete`, {})
    this.uploadId = upload.id
  }
}

/** The picked file is not the one that was being uploaded. */
export class WrongFile extends Error {}

function isWorthRetrying(error: unknown): boolean {
  return error instanceof ApiProblem && (error.status === 0 || error.status === 429 || error.status >= 500)
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds)
    signal.addEventListener("abort", () => {
      clearTimeout(timer)
      reject(new DOMException("aborted", "AbortError"))
    })
  })
}

/** XMLHttpRequest, since fetch does not tell how much of a body has left. */
const sendByRequest: SendPart = (uploadId, n, part, onSent, signal) =>
  new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open("PUT", apiUrl(`/uploads/${uploadId}/parts/${n}`))
    request.setRequestHeader("X-CSRF-Token", csrfToken())
    request.setRequestHeader("Content-Type", "application/octet-stream")
    request.upload.onprogress = (event) => onSent(event.loaded)
    request.onload = () => {
      if (request.status >= 200 && request.status < 300) resolve(JSON.parse(request.responseText) as PartOut)
      else reject(parseProblem(request.status, request.responseText, request.getResponseHeader("Retry-After")))
    }
    request.onerror = () => reject(new ApiProblem(0, "network", "", ""))
    request.onabort = () => reject(new DOMException("aborted", "AbortError"))
    signal.addEventListener("abort", () => request.abort())
    request.send(part)
  })
