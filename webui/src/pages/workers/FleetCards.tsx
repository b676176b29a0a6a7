import type { WorkersSummary } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Figure } from "~/parts/Values"
import type { StateFilter } from "./figures"

interface Props {
  summary: WorkersSummary | undefined
  filter: string | null
  onFilter: (filter: StateFilter | null) => void
}

/** The five figures of a fleet; those that count a state show only its machines when clicked. */
export function FleetCards({ summary, filter, onFilter }: Props) {
  const { t, format } = useWords()
  const use = summary?.avg_gpu_utilization
  const counts: [name: string, count: number | undefined, filter: StateFilter | null][] = [
    [t("workers.total"), summary?.total, null],
    [t("workers.online"), summary?.online, "online"],
    [t("state.training"), summary?.training, "training"],
    [t("state.idle"), summary?.idle, "idle"],
  ]
  return (
    <div className="mb-6 grid grid-cols-2 gap-3 sm:grid-cols-3 lg:grid-cols-5">
      {counts.map(([name, count, state]) => {
        const isOn = state !== null && filter === state
        return (
          <button
            key={name}
            type="button"
            aria-pressed={state === null ? undefined : isOn}
            onClick={() => onFilter(isOn ? null : state)}
            className="card min-w-0 px-4 py-3 text-left hover:border-line-strong aria-pressed:border-accent aria-pressed:bg-accent-soft"
          >
            <span className="block text-sm text-muted">{name}</span>
            <span className="num mt-0.5 block text-xl font-semibold">{format.number(count)}</span>
          </button>
        )
      })}
      <div className="max-sm:col-span-2">
        <Figure name={t("workers.average_gpu")} value={typeof use === "number" ? format.percent(use / 100) : "–"} />
      </div>
    </div>
  )
}
