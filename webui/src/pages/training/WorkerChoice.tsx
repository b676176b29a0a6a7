import { useState } from "react"
import type { WorkerOut, WorkerSelection } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Field, Segmented, Select } from "~/parts/Field"
import { StateBadge } from "~/parts/StateBadge"
import { ANY_WORKER } from "./draft"

type Way = "any" | "machines" | "gpu"

interface Props {
  workers: WorkerOut[]
  value: WorkerSelection
  onChange: (selection: WorkerSelection) => void
  problem: string | undefined
}

/** Which machines may run it: whichever is best, some by name, or those with one kind of GPU. */
export function WorkerChoice({ workers, value, onChange, problem }: Props) {
  const { t, phrase } = useWords()
  const [wanted, setWanted] = useState<Way | null>(null)
  const chosen = new Set([...(value.worker_ids ?? []), ...(value.parsyn_worker_ids ?? [])])
  const way: Way = wanted ?? (value.mode !== "auto" ? "machines" : value.gpu_type ? "gpu" : "any")
  const trains = workers.filter(({ id, worker_type }) => worker_type !== "prompter" || chosen.has(id))
  const gpus = [...new Set([...trains.map(({ hardware }) => hardware?.gpu), value.gpu_type].filter((gpu): gpu is string => Boolean(gpu)))].sort()
  const select = (next: Way) => {
    setWanted(next)
    onChange({ ...ANY_WORKER, ...(next === "gpu" && gpus[0] && { gpu_type: gpus[0] }) })
  }
  const toggle = (id: number) => {
    const ids = new Set(chosen)
    if (!ids.delete(id)) ids.add(id)
    setWanted("machines")
    onChange(selectionOf(trains.filter((worker) => ids.has(worker.id))))
  }
  return (
    <div className="min-w-0 sm:col-span-2">
      <div className="mb-1 text-sm font-medium">{t("where.title")}</div>
      <Segmented
        label={t("where.title")}
        value={way}
        onChange={select}
        options={[
          { value: "any", label: t("where.any") },
          { value: "machines", label: t("where.machines") },
          { value: "gpu", label: t("where.gpu") },
        ]}
      />
      {way === "any" && <p className="mt-1 text-sm text-muted">{t("where.any_hint")}</p>}
      {way === "machines" &&
        (trains.length === 0 ? (
          <p className="mt-1 text-sm text-muted">{t("where.no_machine")}</p>
        ) : (
          <ul className="mt-2 max-h-60 divide-y divide-line overflow-y-auto rounded-lg border border-line">
            {trains.map((worker) => (
              <li key={worker.id}>
                <label className="flex cursor-pointer items-center gap-3 px-3 py-2 text-sm hover:bg-hover">
                  <input type="checkbox" className="accent-(--c-accent)" checked={chosen.has(worker.id)} onChange={() => toggle(worker.id)} />
                  <span className="min-w-0 flex-1">
                    <span className="block truncate font-medium">{worker.name}</span>
                    <span className="block truncate text-muted">{worker.hardware?.gpu ?? t("where.processor")}</span>
                  </span>
                  <StateBadge state={worker.status} />
                </label>
              </li>
            ))}
          </ul>
        ))}
      {way === "machines" && chosen.size === 0 && trains.length > 0 && <p className="mt-1 text-sm text-muted">{t("where.choose_one")}</p>}
      {way === "gpu" &&
        (gpus.length === 0 ? (
          <p className="mt-1 text-sm text-muted">{t("where.no_gpu")}</p>
        ) : (
          <div className="mt-2 max-w-sm">
            <Field label={t("where.gpu")}>
              {(control) => (
                <Select {...control} value={value.gpu_type ?? ""} onChange={(event) => onChange({ ...ANY_WORKER, gpu_type: event.target.value })}>
                  {gpus.map((gpu) => (
                    <option key={gpu}>{gpu}</option>
                  ))}
                </Select>
              )}
            </Field>
          </div>
        ))}
      {problem && <p className="mt-1 text-sm text-bad" role="alert">{phrase(problem)}</p>}
    </div>
  )
}

/** The hub tells its own machines from those of users. */
function selectionOf(chosen: WorkerOut[]): WorkerSelection {
  const own = chosen.filter(({ kind }) => kind !== "managed").map(({ id }) => id)
  const house = chosen.filter(({ kind }) => kind === "managed").map(({ id }) => id)
  const mode = house.length === 0 ? "specific_user_workers" : own.length === 0 ? "specific_parsyn_workers" : "mixed"
  return { ...ANY_WORKER, mode: chosen.length === 0 ? "auto" : mode, worker_ids: own, parsyn_worker_ids: house }
}
