import { useEffect, useRef, useSyncExternalStore } from "react"
import { dashboard, type Connection, type SocketEvent } from "./socket"

/** Listens to one topic while the component is shown. */
export function useTopic(topic: string | null, listener: (event: SocketEvent) => void): void {
  const latest = useRef(listener)
  useEffect(() => {
    latest.current = listener
  })
  useEffect(() => {
    if (topic === null) return
    return dashboard.subscribe(topic, (event) => latest.current(event))
  }, [topic])
}

export function useConnection(): Connection {
  return useSyncExternalStore(
    (callback) => dashboard.watch(callback),
    () => dashboard.connection,
  )
}
