import { QueryClient, useQuery, useQueryClient } from "@tanstack/react-query"
import { useEffect, useRef } from "react"
import { ApiProblem, get, type Query } from "./http"

export interface Page<T> {
  items: T[]
  total: number
}

const PAGE = 200
const MOST_PAGES = 10

export const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      retry: (failures, error) => failures < 2 && !(error instanceof ApiProblem && error.status >= 400 && error.status < 500),
    },
  },
})

/** A whole list, fetched page by page up to 2000 rows; `total` is what the hub has. */
async function fetchAll<T>(path: string, query: Query, signal: AbortSignal): Promise<Page<T>> {
  const first = await get<Page<T>>(path, { ...query, limit: PAGE, offset: 0 }, signal)
  const items = [...first.items]
  for (let page = 1; page < MOST_PAGES && items.length < first.total; page++) {
    const next = await get<Page<T>>(path, { ...query, limit: PAGE, offset: page * PAGE }, signal)
    if (next.items.length === 0) break
    items.push(...next.items)
  }
  return { items, total: first.total }
}

export function useList<T>(path: string, query: Query = {}) {
  return useQuery({
    queryKey: [...keyOf(path), "list", query],
    queryFn: ({ signal }) => fetchAll<T>(path, query, signal),
  })
}

function keyOf(path: string): string[] {
  return path.split("/").filter(Boolean)
}

/** One thing of the API. The key is the path, so that "/datasets/3/report" is refreshed together with "/datasets/3". */
export function useOne<T>(path: string | null, query: Query = {}, options: { refetchInterval?: number | false } = {}) {
  return useQuery({
    queryKey: [...keyOf(path ?? ""), query],
    queryFn: ({ signal }) => get<T>(path ?? "", query, signal),
    enabled: path !== null,
    ...options,
  })
}

/** How often running work is asked for, should the socket be away. */
const POLL = 4000

/** A piece of work from a list, kept fresh while it goes on; `onEnd` is told once it has ended. */
export function useRunning<T extends { status: string }>(path: string, known: T, onEnd: () => void): T {
  const isOpen = ["pending", "queued", "running"].includes(known.status)
  const fresh = useOne<T>(isOpen ? path : null, {}, { refetchInterval: POLL }).data
  const hasEnded = isOpen && fresh !== undefined && !["pending", "queued", "running"].includes(fresh.status)
  const latest = useRef(onEnd)
  useEffect(() => {
    latest.current = onEnd
  })
  useEffect(() => {
    if (hasEnded) latest.current()
  }, [hasEnded])
  return isOpen ? (fresh ?? known) : known
}

/** Marks everything below a path as out of date: refresh("datasets") or refresh("datasets", "3"). */
export function useRefresh() {
  const queries = useQueryClient()
  return (...key: string[]) => void queries.invalidateQueries({ queryKey: key })
}

interface Identified {
  id: number
}

type Gone = { id: number; deleted: true }

/** Writes what the socket told of one thing into its page and into every list that holds it. */
export function storeFresh<T extends Identified>(subject: string, fresh: T | Gone): void {
  storeAllFresh(subject, [fresh])
}

/** The same for many at once: each list is written, and what shows it drawn, a single time. */
export function storeAllFresh<T extends Identified>(subject: string, all: (T | Gone)[]): void {
  const gone = new Set(all.filter(isGone).map(({ id }) => id))
  const fresh = new Map(all.filter((one): one is T => !isGone(one)).map((one) => [one.id, one]))
  for (const one of fresh.values()) client.setQueryData([subject, String(one.id), {}], one)
  client.setQueriesData<Page<T>>({ queryKey: [subject, "list"] }, (page) => page && withChanges(page, fresh, gone))
}

function isGone(one: object): one is Gone {
  return "deleted" in one
}

function withChanges<T extends Identified>(page: Page<T>, fresh: ReadonlyMap<number, T>, gone: ReadonlySet<number>): Page<T> {
  const kept = page.items.filter(({ id }) => !gone.has(id)).map((item) => fresh.get(item.id) ?? item)
  const known = new Set(page.items.map(({ id }) => id))
  const added = [...fresh.values()].filter(({ id }) => !known.has(id))
  return { items: [...added, ...kept], total: page.total + added.length - (page.items.length - kept.length) }
}
