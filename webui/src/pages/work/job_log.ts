import { useEffect, useRef, useState } from "react"
import { get } from "~/api/http"
import { useTopic } from "~/api/live"
import { useRefresh } from "~/api/queries"
import type { LogEntry, LogsOut, ProgressOut } from "~/api/types.gen"
import { mergeLines } from "../training/job_stream"

interface Live {
  lines: LogEntry[]
  progress: ProgressOut | null
  /** Whether what the hub has stored is here. */
  isLoaded: boolean
}

/** The log of an evaluation or export, and how far it is: what is stored, then what arrives. */
export function useJobLog(path: string, id: number): Live {
  const [live, setLive] = useState<Live>({ lines: [], progress: null, isLoaded: false })
  const next = useRef(0)
  const refresh = useRefresh()
  const add = (lines: LogEntry[]) => setLive((known) => ({ ...known, lines: mergeLines(known.lines, lines) }))
  const catchUp = useRef(async () => {
    for (;;) {
      const page = await get<LogsOut>(`${path}/logs`, { since: next.current })
      add(page.items)
      if (page.items.length === 0 || page.next <= next.current) break
      next.current = page.next
    }
    setLive((known) => ({ ...known, isLoaded: true }))
  })
  useEffect(() => {
    // What fails here shows on the page by the job's own query.
    catchUp.current().catch(() => undefined)
  }, [])
  useTopic(`job:${id}`, ({ type, data }) => {
    if (type === "job.log") add(data.items as LogEntry[])
    else if (type === "job.progress") setLive((known) => ({ ...known, progress: data as unknown as ProgressOut }))
    else if (type === "job.state") refresh(...path.split("/").filter(Boolean))
    else if (type === "snapshot") catchUp.current().catch(() => undefined)
  })
  return live
}
