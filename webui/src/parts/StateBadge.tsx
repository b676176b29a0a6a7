import { Ban, CircleAlert, CircleCheck, CircleDashed, CirclePause, Clock, LoaderCircle, PowerOff, TriangleAlert, type LucideIcon } from "lucide-react"
import { useWords, type Key } from "~/i18n"

type Tone = "good" | "bad" | "warn" | "live" | "calm"

const TONES: Record<Tone, string> = {
  good: "text-good bg-good-soft",
  bad: "text-bad bg-bad-soft",
  warn: "text-warn bg-warn-soft",
  live: "text-accent bg-accent-soft",
  calm: "text-muted bg-sunken",
}

const STATES = {
  pending: ["calm", CircleDashed, "state.pending"],
  queued: ["warn", Clock, "state.queued"],
  offered: ["warn", Clock, "state.offered"],
  running: ["live", LoaderCircle, "state.running"],
  completed: ["good", CircleCheck, "state.completed"],
  failed: ["bad", CircleAlert, "state.failed"],
  cancelled: ["calm", Ban, "state.cancelled"],
  validating: ["live", LoaderCircle, "state.validating"],
  ready: ["good", CircleCheck, "state.ready"],
  invalid: ["bad", CircleAlert, "state.invalid"],
  needs_mapping: ["warn", TriangleAlert, "state.needs_mapping"],
  registered: ["warn", Clock, "state.registered"],
  training: ["live", LoaderCircle, "state.training"],
  offline: ["calm", PowerOff, "state.offline"],
  idle: ["good", CircleCheck, "state.idle"],
  busy: ["live", LoaderCircle, "state.busy"],
  draining: ["warn", Clock, "state.draining"],
  paused: ["calm", CirclePause, "state.paused"],
  revoked: ["calm", Ban, "state.revoked"],
  expired: ["calm", Ban, "state.expired"],
  used_up: ["calm", Ban, "state.used_up"],
  active: ["good", CircleCheck, "state.active"],
} as const satisfies Record<string, readonly [Tone, LucideIcon, Key]>

export type StateName = keyof typeof STATES

export function isState(name: string): name is StateName {
  return name in STATES
}

/** A state by colour, icon and word together; an unknown one is shown by its own name. */
export function StateBadge({ state }: { state: string }) {
  const { t } = useWords()
  const [tone, Icon, key] = isState(state) ? STATES[state] : (["calm", CircleDashed, null] as const)
  return (
    <span className={`inline-flex items-center gap-1 rounded-full px-2 py-0.5 text-xs font-medium whitespace-nowrap ${TONES[tone]}`}>
      <Icon size={13} aria-hidden />
      {key ? t(key) : state}
    </span>
  )
}

const DOTS: Record<Tone, string> = {
  good: "bg-good",
  bad: "bg-bad",
  warn: "bg-warn",
  live: "bg-accent",
  calm: "border-2 border-line-strong",
}

/** A state in a dense table: a dot and its word. What is at rest is a ring, so that colour is not all that tells. */
export function StateDot({ state }: { state: string }) {
  const { t } = useWords()
  const [tone, , key] = isState(state) ? STATES[state] : (["calm", null, null] as const)
  return (
    <span className="inline-flex items-center gap-2 whitespace-nowrap">
      <span aria-hidden className={`size-2.5 shrink-0 rounded-full ${DOTS[tone]}`} />
      {key ? t(key) : state}
    </span>
  )
}
