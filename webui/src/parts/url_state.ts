import { useCallback, useLayoutEffect, useRef } from "react"
import { useSearchParams } from "react-router"

type Change = Record<string, string | null>

/**
 * The page's search parameters; a change touches those that it names and leaves the others. `null` removes one.
 *
 * A change starts from the address itself and is drawn at once: what the library hands to a component is as old as its
 * last drawing, which on a busy machine comes later than the next click, and that click would undo the one before.
 */
export function useUrlState(): [URLSearchParams, (change: Change, how?: { replace?: boolean }) => void] {
  const [params, setParams] = useSearchParams()
  // The library's function is another one after each navigation, and what depends on it would be made anew.
  const latest = useRef(setParams)
  useLayoutEffect(() => {
    latest.current = setParams
  })
  const change = useCallback((values: Change, { replace = false }: { replace?: boolean } = {}) => {
    latest.current(changed(new URLSearchParams(window.location.search), values), { replace, flushSync: true })
  }, [])
  return [params, change]
}

function changed(known: URLSearchParams, values: Change): URLSearchParams {
  const next = new URLSearchParams(known)
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === "") next.delete(name)
    else next.set(name, value)
  }
  return next
}
