import { describe, expect, it } from "vitest"
import { columnsOf, lowest, mergePoints, smooth, toCsv, type Point } from "~/parts/series"

const point = (step: number, value: number | null = step): Point => [step, 1000 + step, value]

describe("series", () => {
  it("appends, and replaces a step that comes again", () => {
    expect(mergePoints([point(1), point(2)], [point(3)])).toEqual([point(1), point(2), point(3)])
    expect(mergePoints([point(1), point(2), point(3)], [point(2, 9), point(4)])).toEqual([point(1), point(2, 9), point(3), point(4)])
    expect(mergePoints([], [point(2), point(1)])).toEqual([point(1), point(2)])
  })
  it("lies on either axis", () => {
    expect(columnsOf([point(5), point(6)], "step", 1000)).toEqual([[5, 6], [5, 6]])
    expect(columnsOf([point(5), point(6)], "time", 1000)[0]).toEqual([5, 6])
  })
  it("smooths without a bias at the start, and not across a gap", () => {
    expect(smooth([2, 2, 2], 0.9)).toEqual([2, 2, 2].map((value) => expect.closeTo(value)))
    expect(smooth([4, null, 8], 0.9)).toEqual([expect.closeTo(4), null, expect.closeTo(8)])
    expect(smooth([1, 3], 0)).toEqual([1, 3])
  })
  it("finds the lowest and writes CSV", () => {
    expect(lowest([3, null, 1, 2])).toBe(2)
    expect(lowest([null])).toBeNull()
    expect(lowest([undefined, 3, undefined, 2])).toBe(3)
    expect(toCsv([{ label: "loss", colour: "", points: [[1, 0, 2.5]] }])).toBe("name,step,time,value\nloss,1,1970-01-01T00:00:00.000Z,2.5\n")
  })
})
