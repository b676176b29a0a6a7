import type { SortingState, Updater, VisibilityState } from "@tanstack/react-table"
import { useState } from "react"
import { useUrlState } from "./url_state"

/** What a reader chose for a table. With a name, filter and order are shared with the link and columns kept in the browser. */
export function useTableState(name: string | undefined, initial: SortingState) {
  const [params, change] = useUrlState()
  const [sorting, setSorting] = useState<SortingState>(() => (name ? readSorting(params.get("sort")) : null) ?? initial)
  const [filter, setFilter] = useState(() => (name ? (params.get("q") ?? "") : ""))
  const [visibility, setVisibility] = useState<VisibilityState>(() => readColumns(name))
  return {
    sorting,
    filter,
    visibility,
    setSorting: (updater: Updater<SortingState>) => {
      const next = applied(updater, sorting)
      setSorting(next)
      if (name) change({ sort: writeSorting(next, initial) }, { replace: true })
    },
    setFilter: (next: string) => {
      setFilter(next)
      if (name) change({ q: next || null }, { replace: true })
    },
    setVisibility: (updater: Updater<VisibilityState>) => {
      const next = applied(updater, visibility)
      setVisibility(next)
      if (name) localStorage.setItem(storageKey(name), JSON.stringify(next))
    },
  }
}

function applied<T>(updater: Updater<T>, known: T): T {
  return updater instanceof Function ? updater(known) : updater
}

/** "name" and "-name": the column, and which way. */
export function readSorting(text: string | null): SortingState | null {
  if (!text) return null
  const desc = text.startsWith("-")
  return [{ id: desc ? text.slice(1) : text, desc }]
}

export function writeSorting(sorting: SortingState, initial: SortingState): string | null {
  const [first] = sorting
  if (!first || JSON.stringify(sorting) === JSON.stringify(initial)) return null
  return (first.desc ? "-" : "") + first.id
}

function storageKey(name: string): string {
  return `parsyn.columns.${name}`
}

function readColumns(name: string | undefined): VisibilityState {
  try {
    return name ? (JSON.parse(localStorage.getItem(storageKey(name)) ?? "{}") as VisibilityState) : {}
  } catch {
    return {}
  }
}
