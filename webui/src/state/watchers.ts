/** Who looks at a value that lives outside of React: `subscribe` is for `useSyncExternalStore`. */
export function makeWatchers(): { subscribe: (watcher: () => void) => () => void; tell: () => void } {
  const watchers = new Set<() => void>()
  return {
    subscribe: (watcher) => {
      watchers.add(watcher)
      return () => watchers.delete(watcher)
    },
    tell: () => {
      for (const watcher of watchers) watcher()
    },
  }
}
