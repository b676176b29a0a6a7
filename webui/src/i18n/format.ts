export type Language = "en" | "fr"

const BYTE_UNITS = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"] as const
const RELATIVE_STEPS: [limit: number, seconds: number, unit: Intl.RelativeTimeFormatUnit][] = [
  [60, 1, "second"],
  [3600, 60, "minute"],
  [86_400, 3600, "hour"],
  [604_800, 86_400, "day"],
  [2_629_800, 604_800, "week"],
  [31_557_600, 2_629_800, "month"],
  [Infinity, 31_557_600, "year"],
]

/** Numbers, sizes, durations and dates as a reader of the language writes them. Every method accepts missing values and answers "–". */
export class Formatter {
  private readonly relativeTime: Intl.RelativeTimeFormat
  private readonly shortRelativeTime: Intl.RelativeTimeFormat
  private readonly wholeTime: Intl.DateTimeFormat
  private readonly clockTime: Intl.DateTimeFormat
  private readonly dayTime: Intl.DateTimeFormat
  private readonly numbers = new Map<string, Intl.NumberFormat>()

  constructor(readonly language: Language) {
    this.relativeTime = new Intl.RelativeTimeFormat(language, { numeric: "auto" })
    // In French, narrow is a bare "-4 s".
    this.shortRelativeTime = new Intl.RelativeTimeFormat(language, { style: language === "en" ? "narrow" : "short" })
    this.wholeTime = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "medium" })
    this.clockTime = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" })
    this.dayTime = new Intl.DateTimeFormat(language, { dateStyle: "medium" })
  }

  number(value: number | null | undefined, digits = 0): string {
    if (!isFinite(value)) return "–"
    return this.numberFormat({ maximumFractionDigits: digits }).format(value)
  }

  /** Four significant digits for a metric; very small values (learning rates) as 2e-4. */
  metric(value: number | null | undefined): string {
    if (!isFinite(value)) return "–"
    const size = Math.abs(value)
    if (size !== 0 && size < 1e-3) return this.decimalMark(trimExponent(value.toExponential(2)))
    return this.numberFormat({ maximumSignificantDigits: size >= 1e4 ? 6 : 4 }).format(value)
  }

  /** Every digit, as one would type it: 0.05, and 1e-5 where zeros would hide it. */
  typed(value: number): string {
    const isTiny = value !== 0 && Math.abs(value) < 1e-3
    return this.decimalMark(isTiny ? value.toExponential() : String(value))
  }

  compact(value: number | null | undefined): string {
    if (!isFinite(value)) return "–"
    return this.numberFormat({ notation: "compact", maximumSignificantDigits: 3 }).format(value)
  }

  percent(fraction: number | null | undefined, digits = 0): string {
    if (!isFinite(fraction)) return "–"
    return this.numberFormat({ style: "percent", maximumFractionDigits: digits }).format(fraction)
  }

  bytes(value: number | null | undefined): string {
    if (!isFinite(value)) return "–"
    let power = 0
    let rest = value
    while (rest >= 999.5 && power < BYTE_UNITS.length - 1) {
      rest /= 1000
      power += 1
    }
    const digits = power === 0 || rest >= 100 ? 0 : 1
    return this.numberFormat({
      style: "unit",
      unit: BYTE_UNITS[power],
      unitDisplay: power === 0 ? "long" : "short",
      maximumFractionDigits: digits,
    }).format(rest)
  }

  /** As much of a duration as one wants to know: "0.4 s", "48 s", "3 min 20 s", "37 min", "2 h 5 min". */
  duration(seconds: number | null | undefined): string {
    if (!isFinite(seconds)) return "–"
    const whole = Math.max(0, Math.round(seconds))
    if (whole < 10) return this.unit(Math.max(0, Math.round(seconds * 10) / 10), "second")
    if (whole < 60) return this.unit(whole, "second")
    if (whole >= 600 && whole < 3600) return this.unit(Math.round(whole / 60), "minute")
    if (whole < 3600) return this.pair(Math.floor(whole / 60), "minute", whole % 60, "second")
    if (whole < 86_400) return this.pair(Math.floor(whole / 3600), "hour", Math.floor((whole % 3600) / 60), "minute")
    return this.pair(Math.floor(whole / 86_400), "day", Math.floor((whole % 86_400) / 3600), "hour")
  }

  relative(time: string | null | undefined, now = Date.now(), short = false): string {
    if (!time) return "–"
    const seconds = (Date.parse(time) - now) / 1000
    const size = Math.abs(seconds)
    const step = RELATIVE_STEPS.find(([limit]) => size < limit) ?? RELATIVE_STEPS[RELATIVE_STEPS.length - 1]!
    return (short ? this.shortRelativeTime : this.relativeTime).format(Math.round(seconds / step[1]), step[2])
  }

  dateTime(time: string | null | undefined): string {
    if (!time) return "–"
    return this.wholeTime.format(new Date(time))
  }

  clock(time: string | null | undefined): string {
    if (!time) return "–"
    return this.clockTime.format(new Date(time))
  }

  /** When something was: the clock alone today, after its date on any other day. */
  moment(time: string | null | undefined, now = new Date()): string {
    if (!time) return "–"
    const isToday = new Date(time).toDateString() === now.toDateString()
    return isToday ? this.clock(time) : `${this.dayTime.format(new Date(time))}, ${this.clock(time)}`
  }

  /** A day of the week, 0 for Monday. */
  weekday(index: number, width: "short" | "long"): string {
    // The first of January 2024 was a Monday.
    return new Intl.DateTimeFormat(this.language, { weekday: width, timeZone: "UTC" }).format(Date.UTC(2024, 0, 1 + index))
  }

  list(words: string[]): string {
    return new Intl.ListFormat(this.language, { type: "conjunction" }).format(words)
  }

  /** Making a format costs far more than using it, and a table uses hundreds. */
  private numberFormat(options: Intl.NumberFormatOptions): Intl.NumberFormat {
    const key = JSON.stringify(options)
    const known = this.numbers.get(key) ?? new Intl.NumberFormat(this.language, options)
    this.numbers.set(key, known)
    return known
  }

  private unit(value: number, unit: string): string {
    const unitDisplay = unit === "day" ? "long" : "short"
    const format = this.numberFormat({ style: "unit", unit, unitDisplay, maximumFractionDigits: 1 })
    return format.format(value).replace(/\bsec\b/, "s").replace(/\bhr\b/, "h")
  }

  private pair(major: number, majorUnit: string, minor: number, minorUnit: string): string {
    const first = this.unit(major, majorUnit)
    return minor === 0 ? first : `${first} ${this.unit(minor, minorUnit)}`
  }

  private decimalMark(text: string): string {
    return this.language === "fr" ? text.replace(".", ",") : text
  }
}

function isFinite(value: number | null | undefined): value is number {
  return typeof value === "number" && Number.isFinite(value)
}

function trimExponent(text: string): string {
  return text.replace(/\.?0+e/, "e").replace("e+", "e")
}
