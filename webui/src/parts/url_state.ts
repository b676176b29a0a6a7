import { useCallback } from "react"
import { useSearchParams } from "react-router"

type Change = Record<string, string | null>

/** The page's search parameters; a change touches those that it names and leaves the others. `null` removes one. */
export function useUrlState(): [URLSearchParams, (change: Change, how?: { replace?: boolean }) => void] {
  const [params, setParams] = useSearchParams()
  const change = useCallback(
    (values: Change, how: { replace?: boolean } = {}) => setParams((known) => changed(known, values), { replace: how.replace ?? false }),
    [setParams],
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
