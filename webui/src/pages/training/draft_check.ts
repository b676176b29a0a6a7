import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { useEffect, useState } from "react"
import { send } from "~/api/http"
import type { TrainingDraftIn, TrainingDraftOut } from "~/api/types.gen"

const AFTER = 350

export interface DraftCheck {
  /** What the hub said last. */
  said: TrainingDraftOut | undefined
  /** The request that it said it of. */
  of: TrainingDraftIn | undefined
  error: unknown
}

/** Asks the hub what it thinks of the request, a moment after the last change. */
export function useDraftCheck(body: TrainingDraftIn): DraftCheck {
  const text = useSettled(JSON.stringify(body))
  const query = useQuery({
    queryKey: ["training-drafts", text],
    queryFn: async ({ signal }) => {
      const asked = JSON.parse(text) as TrainingDraftIn
      const response = await send("POST", "/training-jobs/validate", { body: asked, signal })
      return { said: (await response.json()) as TrainingDraftOut, of: asked }
    },
    placeholderData: keepPreviousData,
    gcTime: 60_000,
    refetchInterval: 15_000,
  })
  return { said: query.data?.said, of: query.data?.of, error: query.error }
}

/** The value, once it has stayed the same for a moment; the first one at once. */
function useSettled(value: string): string {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), AFTER)
    return () => clearTimeout(timer)
  }, [value])
  return settled
}
