/** Calls `work` at most every `wait` milliseconds, however often it is asked for; the last asking is always followed. */
export function atMostEvery(wait: number, work: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  return () => {
    timer ??= setTimeout(() => {
      timer = undefined
      work()
    }, wait)
  }
}
