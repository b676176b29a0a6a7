import type { WorkerLimits, WorkingHours } from "~/api/types.gen"

export const WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const
export type Weekday = (typeof WEEKDAYS)[number]
export const GIGABYTE = 1e9

/** The limits as they are edited: memory as typed, one time zone for all hours. */
export interface LimitsDraft {
  hours: { days: Weekday[]; start: string; end: string }[]
  timezone: string
  cap: string
  projects: number[] | null
}

export function draftOf(limits: WorkerLimits, ownZone: string): LimitsDraft {
  const hours = limits.working_hours ?? []
  return {
    hours: hours.map(({ days, start, end }) => ({ days: WEEKDAYS.filter((day) => days.includes(day)), start, end })),
    timezone: hours[0]?.timezone ?? ownZone,
    cap: limits.vram_cap ? String(Math.round((limits.vram_cap / GIGABYTE) * 100) / 100) : "",
    projects: limits.projects ?? null,
  }
}

export function limitsOf(draft: LimitsDraft): WorkerLimits {
  return {
    working_hours: draft.hours.map((one): WorkingHours => ({ ...one, timezone: draft.timezone }) as WorkingHours),
    vram_cap: draft.cap.trim() ? Math.round(Number(draft.cap.replace(",", ".")) * GIGABYTE) : null,
    projects: draft.projects,
  }
}

/** What a new row of hours begins with: nights of the week, when the machine's owner sleeps. */
export const NIGHTS: LimitsDraft["hours"][number] = { days: ["mon", "tue", "wed", "thu", "fri"], start: "20:00", end: "08:00" }

export function toggled<T>(list: readonly T[], item: T): T[] {
  return list.includes(item) ? list.filter((one) => one !== item) : [...list, item]
}

export interface EditorProps {
  draft: LimitsDraft
  onChange: (values: Partial<LimitsDraft>) => void
}
