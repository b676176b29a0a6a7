import { useCallback, useLayoutEffect, useRef } from "react"
import { useSearchParams } from "react-router"

type Change = Record<string, string | null>

/** The page's search parameters; a change touches those that it names and leaves the others. `null` removes one. */
export function useUrlState(): [URLSearchParams, (change: Change, how?: { replace?: boolean }) => void] {
  const [params, setParams] = useSearchParams()
  // The library's function is another one after each navigation, and what depends on it would be made anew.
  const latest = useRef(setParams)
  useLayoutEffect(() => {
    latest.current = setParams
  })
  const change = useCallback(
    (values: Change, how: { replace?: boolean } = {}) => latest.current((known) => changed(known, values), { replace: how.replace ?? false }),
    [],
  )
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
