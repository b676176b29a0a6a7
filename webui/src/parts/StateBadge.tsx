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
