import { describe, expect, it } from "vitest"
import { Formatter } from "~/i18n/format"
import { formatMessage } from "~/i18n/message"

const english = new Formatter("en")
const french = new Formatter("fr")
/** Intl separates with several kinds of space. */
const plain = (text: string) => text.replace(/\s/g, " ")

describe("formatter", () => {
  it("writes sizes in decimal units of the language", () => {
    expect(plain(english.bytes(999))).toBe("999 bytes")
    expect(plain(english.bytes(1_234_567))).toBe("1.2 MB")
    expect(plain(french.bytes(105_454_432))).toBe("105 Mo")
    expect(plain(english.bytes(999_600))).toBe("1 MB")
  })

  it("writes durations as precisely as one wants them", () => {
    expect(plain(english.duration(0.42))).toBe("0.4 s")
    expect(plain(english.duration(48))).toBe("48 s")
    expect(plain(english.duration(200))).toBe("3 min 20 s")
    expect(plain(english.duration(2271))).toBe("38 min")
    expect(plain(english.duration(7500))).toBe("2 h 5 min")
    expect(plain(french.duration(200_000))).toBe("2 jours 7 h")
    expect(english.duration(-3)).toContain("0")
  })

  it("keeps small rates legible", () => {
    expect(english.metric(2e-4)).toBe("2e-4")
    expect(french.metric(2.51e-4)).toBe("2,51e-4")
    expect(english.metric(1.23456)).toBe("1.235")
    expect(english.metric(0)).toBe("0")
  })

  it("answers a dash for what is not known", () => {
    for (const value of [null, undefined, NaN, Infinity]) {
      expect([english.number(value), english.bytes(value), english.duration(value), english.metric(value)]).toEqual(["–", "–", "–", "–"])
    }
  })

  it("tells times relative to now", () => {
    const now = Date.parse("2026-11-30T12:00:00Z")
    expect(english.relative("2026-11-30T11:58:00Z", now)).toBe("2 minutes ago")
    expect(french.relative("2026-11-29T12:00:00Z", now)).toBe("hier")
  })
})

describe("moments and typed numbers", () => {
  it("leave out the date of today", () => {
    const now = new Date(2026, 2, 5, 18, 0, 0)
    expect(new Formatter("en").moment(new Date(2026, 2, 5, 9, 4, 7).toISOString(), now)).toBe("09:04:07")
    expect(new Formatter("fr").moment(new Date(2026, 2, 4, 9, 4, 7).toISOString(), now)).toBe("4 mars 2026, 09:04:07")
  })

  it("keep every digit, with the mark of the language", () => {
    expect([0.05, 16, 0, 0.00001].map((value) => new Formatter("fr").typed(value))).toEqual(["0,05", "16", "0", "1e-5"])
  })
})

describe("messages", () => {
  const rows = { one: "{count} row", other: "{count} rows", zero: "no rows" }
  it("chooses the plural of the language", () => {
    expect(formatMessage(rows, { count: 0 }, "en")).toBe("no rows")
    expect(formatMessage(rows, { count: 1 }, "en")).toBe("1 row")
    expect(formatMessage({ one: "{count} ligne", other: "{count} lignes" }, { count: 0 }, "fr")).toBe("0 ligne")
    expect(formatMessage({ one: "a", other: "b", many: "c" }, { count: 1_000_000 }, "fr")).toBe("c")
  })
  it("formats numbers and leaves unknown holes alone", () => {
    expect(formatMessage("{count} of {total}", { count: 12480 }, "en")).toBe("12,480 of {total}")
  })
})
