import { describe, expect, it } from "vitest"
import type { MessageOut } from "~/api/types.gen"
import { branchOf, upTo } from "~/pages/chat/branches"

const message = (id: number, parent_id: number | null, role: "user" | "assistant") => ({ id, parent_id, role }) as MessageOut
// 1 asks, 2 and 5 answer it; 3 asks on from 2, 4 answers; 6 is another first question.
const talk = [
  message(1, null, "user"), message(2, 1, "assistant"), message(3, 2, "user"), message(4, 3, "assistant"),
  message(5, 1, "assistant"), message(6, null, "user"),
]
const ids = (chosen: Record<string, number>, messages = talk) => branchOf(messages, chosen).map((one) => one.message.id)

describe("branches of a conversation", () => {
  it("shows the one on which something was said last", () => {
    expect(ids({})).toEqual([6])
    expect(ids({}, talk.slice(0, 5))).toEqual([1, 5])
    expect(ids({}, talk.slice(0, 4))).toEqual([1, 2, 3, 4])
  })

  it("follows what was chosen, and the newest from there", () => {
    expect(ids({ first: 1 })).toEqual([1, 5])
    expect(ids({ first: 1, "1": 2 })).toEqual([1, 2, 3, 4])
    expect(ids({ first: 99 })).toEqual([6])
  })

  it("knows the versions at each place", () => {
    const branch = branchOf(talk, { first: 1 })
    expect(branch.map(({ versions }) => versions)).toEqual([[1, 6], [2, 5]])
  })

  it("is cut where a new question begins", () => {
    const branch = branchOf(talk, { first: 1, "1": 2 })
    expect(upTo(branch, 2).map((one) => one.message.id)).toEqual([1, 2])
    expect(upTo(branch, null)).toEqual([])
  })

  it("is empty without messages", () => {
    expect(branchOf([], {})).toEqual([])
  })
})
