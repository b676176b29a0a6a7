/** One entry of `errors` in a problem document: where in the request, and what is wrong there. */
export interface FieldError {
  loc: (string | number)[]
  msg: string
}

/** An answer that is not a success, in the hub's own words (RFC 9457), or a request that got no answer (`status` 0). */
export class ApiProblem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly title: string,
    readonly detail: string,
    readonly errors: FieldError[] = [],
    readonly retryAfter: number | null = null,
  ) {
    super(detail || title)
  }

  /** The messages of one field, e.g. at("config", "lora_r"). */
  at(...loc: (string | number)[]): string | undefined {
    return this.errors.find((error) => error.loc.join(".") === loc.join("."))?.msg
  }
}

/** The message of one field, where `error` is a problem that has one there. */
export function problemAt(error: unknown, ...loc: (string | number)[]): string | undefined {
  return error instanceof ApiProblem ? error.at(...loc) : undefined
}

export type Query = Record<string, string | number | boolean | null | undefined>

interface Options {
  query?: Query
  body?: unknown
  signal?: AbortSignal
  headers?: Record<string, string>
}

const BASE = "/api/v1"
let unauthorised: () => void = () => undefined

/** Called when a request finds that the session is over. */
export function onUnauthorised(callback: () => void): void {
  unauthorised = callback
}

export function apiUrl(path: string, query: Query = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") search.set(name, String(value))
  }
  const text = search.toString()
  return BASE + path + (text && `?${text}`)
}

export function csrfToken(): string {
  return /(?:^|;\s*)parsyn_csrf=([^;]*)/.exec(document.cookie)?.[1] ?? ""
}

/** Sends a request with the session and answers the raw response; throws ApiProblem for anything but a 2xx. */
export async function send(method: string, path: string, options: Options = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: "application/json", ...options.headers }
  if (method !== "GET") headers["X-CSRF-Token"] = csrfToken()
  const init: RequestInit = { method, headers, credentials: "same-origin" }
  if (options.signal) init.signal = options.signal
  if (options.body !== undefined) {
    headers["Content-Type"] = "application/json"
    init.body = JSON.stringify(options.body)
  }
  let response: Response
  try {
    response = await fetch(apiUrl(path, options.query), init)
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error
    throw new ApiProblem(0, "network", "", "")
  }
  if (response.ok) return response
  const problem = await readProblem(response)
  if (problem.status === 401 && !path.startsWith("/auth/")) unauthorised()
  throw problem
}

export async function readProblem(response: Response): Promise<ApiProblem> {
  return parseProblem(response.status, await response.text(), response.headers.get("Retry-After"))
}

export function parseProblem(status: number, text: string, retryAfter: string | null): ApiProblem {
  const wait = retryAfter === null ? null : Number(retryAfter)
  try {
    const body = JSON.parse(text) as Partial<ApiProblem>
    return new ApiProblem(status, body.code ?? "unknown", body.title ?? "", body.detail ?? "", body.errors ?? [], wait)
  } catch {
    return new ApiProblem(status, "unknown", "", "", [], wait)
  }
}

async function json<T>(method: string, path: string, options?: Options): Promise<T> {
  const response = await send(method, path, options)
  const text = await response.text()
  return (text ? JSON.parse(text) : undefined) as T
}

export const get = <T>(path: string, query?: Query, signal?: AbortSignal) =>
  json<T>("GET", path, { ...(query && { query }), ...(signal && { signal }) })
export const patch = <T>(path: string, body: unknown) => json<T>("PATCH", path, { body })
export const remove = (path: string) => json<void>("DELETE", path)

/** A POST that creates or starts something carries a key, so that a repeated click or a retry does it once. */
export const post = <T>(path: string, body: unknown = {}, key: string = randomKey()) =>
  json<T>("POST", path, { body, headers: { "Idempotency-Key": key } })

/** Random, also where crypto.randomUUID is missing because the page came over plain HTTP. */
export function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("")
}
