import { describe, expect, it } from "vitest"
import type { QueuedJob } from "~/api/types.gen"
import { dropOn, moved, stepFrom, wayBack } from "~/pages/training/queue_order"

/** "a1 b1 a2": jobs 1, 2, 3 in this order, of users a, b and a. */
function queue(text: string): QueuedJob[] {
  return text.split(" ").map((word, index) => {
    const [user, priority = "normal"] = word.split(":")
    return { position: index + 1, job: { id: index + 1, user_id: user!.charCodeAt(0), priority }, movable: true } as unknown as QueuedJob
  })
}

const ids = (items: QueuedJob[]) => items.map(({ job }) => job.id)

describe("the order of the queue", () => {
  it("steps over jobs of others to the next of one's own", () => {
    const items = queue("a b a")
    expect(stepFrom(items, 3, -1)).toEqual({ before_id: 1 })
    expect(stepFrom(items, 1, 1)).toEqual({ after_id: 3 })
    expect(stepFrom(items, 1, -1)).toBeNull()
    expect(stepFrom(items, 2, 1)).toBeNull()
  })

  it("does not step between priorities", () => {
    expect(stepFrom(queue("a:high a"), 2, -1)).toBeNull()
  })

  it("drops before a job when dragged up and after it when dragged down", () => {
    const items = queue("a a a")
    expect(dropOn(items, 3, 1)).toEqual({ before_id: 1 })
    expect(dropOn(items, 1, 2)).toEqual({ after_id: 2 })
    expect(dropOn(items, 2, 2)).toBeNull()
  })

  it("shows the new order at once and leaves others in their places", () => {
    const items = moved(queue("a b a a"), 4, { before_id: 1 })
    expect(ids(items)).toEqual([4, 2, 1, 3])
    expect(items.map(({ position }) => position)).toEqual([1, 2, 3, 4])
    expect(ids(moved(queue("a b"), 1, { after_id: 2 }))).toEqual([1, 2])
  })

  it("finds the way back to where a job was", () => {
    const items = queue("a a a")
    for (const [id, place] of [
      [1, { after_id: 3 }],
      [2, { before_id: 1 }],
      [3, { before_id: 1 }],
    ] as const) {
      const back = wayBack(items, id)!
      expect(ids(moved(moved(items, id, place), id, back))).toEqual([1, 2, 3])
    }
    expect(wayBack(queue("a b"), 1)).toBeNull()
  })
})
