import { Plus, Trash2 } from "lucide-react"
import { useWords } from "~/i18n"
import { Button, IconButton } from "~/parts/Button"
import { Input, Select } from "~/parts/Field"
import { NIGHTS, toggled, WEEKDAYS, type EditorProps, type LimitsDraft } from "./limits"

type Hours = LimitsDraft["hours"][number]

/** When the machine takes new work: always, or at the hours of each row. */
export function HoursEditor({ draft, onChange }: EditorProps) {
  const { t } = useWords()
  const { hours } = draft
  const put = (at: number, values: Partial<Hours>) => onChange({ hours: hours.map((one, index) => (index === at ? { ...one, ...values } : one)) })
  return (
    <fieldset>
      <legend className="mb-1 text-sm font-medium">{t("limits.hours")}</legend>
      {hours.length === 0 && <p className="mb-2 text-sm text-muted">{t("limits.always")}</p>}
      <div className="space-y-3">
        {hours.map((one, at) => (
          <HoursRow key={at} hours={one} onChange={(values) => put(at, values)} onRemove={() => onChange({ hours: hours.filter((_, index) => index !== at) })} />
        ))}
      </div>
      {hours.length > 0 && <ZonePicker zone={draft.timezone} onPick={(timezone) => onChange({ timezone })} />}
      <Button className="mt-3" onClick={() => onChange({ hours: [...hours, NIGHTS] })}>
        <Plus size={16} aria-hidden /> {t("limits.add_hours")}
      </Button>
      {hours.length > 0 && <p className="mt-2 text-sm text-muted">{t("limits.hours_hint")}</p>}
    </fieldset>
  )
}

function HoursRow({ hours, onChange, onRemove }: { hours: Hours; onChange: (values: Partial<Hours>) => void; onRemove: () => void }) {
  const { t, format } = useWords()
  return (
    <div className="flex flex-wrap items-center gap-2">
      <span role="group" aria-label={t("limits.days")} className="flex flex-wrap gap-1">
        {WEEKDAYS.map((day, index) => (
          <button
            key={day}
            type="button"
            aria-pressed={hours.days.includes(day)}
            aria-label={format.weekday(index, "long")}
            onClick={() => onChange({ days: WEEKDAYS.filter((one) => toggled(hours.days, day).includes(one)) })}
            className="h-9 min-w-9 rounded-[7px] border border-line-strong px-1.5 text-sm text-muted hover:bg-hover aria-pressed:border-accent aria-pressed:bg-accent-soft aria-pressed:font-medium aria-pressed:text-accent"
          >
            {format.weekday(index, "short")}
          </button>
        ))}
      </span>
      <span className="flex items-center gap-2 text-sm">
        <Input type="time" required className="!w-auto" aria-label={t("limits.from")} value={hours.start} onChange={(event) => onChange({ start: event.target.value })} />
        <span aria-hidden>–</span>
        <Input type="time" required className="!w-auto" aria-label={t("limits.to")} value={hours.end} onChange={(event) => onChange({ end: event.target.value })} />
        <IconButton label={t("limits.remove_hours")} onClick={onRemove}>
          <Trash2 size={16} aria-hidden />
        </IconButton>
      </span>
      {hours.days.length === 0 && <p className="w-full text-sm text-warn">{t("limits.no_day")}</p>}
    </div>
  )
}

function ZonePicker({ zone, onPick }: { zone: string; onPick: (zone: string) => void }) {
  const { t } = useWords()
  const zones = [...new Set([zone, "UTC", ...Intl.supportedValuesOf("timeZone")])]
  return (
    <label className="mt-3 flex flex-wrap items-center gap-2 text-sm">
      {t("limits.zone")}
      <Select className="!w-auto max-w-full" value={zone} onChange={(event) => onPick(event.target.value)}>
        {zones.map((name) => (
          <option key={name} value={name}>
            {name.replace(/_/g, " ")}
          </option>
        ))}
      </Select>
    </label>
  )
}
