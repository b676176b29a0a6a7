import { useMutation } from "@tanstack/react-query"
import { KeyRound, Trash2 } from "lucide-react"
import { useState } from "react"
import { Link } from "react-router"
import type { WorkerOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { EditableName } from "~/parts/EditableName"
import { ErrorNote } from "~/parts/ErrorNote"
import { Select } from "~/parts/Field"
import { Menu } from "~/parts/Menu"
import { Section } from "~/parts/Page"
import { Progress } from "~/parts/Progress"
import { Sheet } from "~/parts/Sheet"
import { StateBadge } from "~/parts/StateBadge"
import { Ago } from "~/parts/Values"
import { change, useVerbs, verbsFor } from "./actions"
import { BenchmarkSection } from "./BenchmarkSection"
import { HardwareFacts } from "./HardwareFacts"
import { jobLink } from "./job_link"
import { LimitsSection } from "./LimitsSection"
import { MachineCharts } from "./MachineCharts"
import { RemoveWorker } from "./RemoveWorker"
import { RotateKey } from "./RotateKey"
import { TypeOptions } from "./TypeOptions"
import { WorkerHistory } from "./WorkerHistory"
import { VERB_ICONS } from "./WorkerMenu"

/** Everything about one machine, and all that one does with it. */
export function WorkerPanel({ worker, onClose }: { worker: WorkerOut; onClose: () => void }) {
  const { t } = useWords()
  const [asked, setAsked] = useState<"remove" | "rotate" | null>(null)
  return (
    <Sheet
      title={worker.name}
      onClose={onClose}
      heading={<EditableName name={worker.name} onRename={(name) => change(worker, { name })} level={2} />}
      actions={
        <Menu
          items={[
            { label: t("workers.rotate"), icon: <KeyRound size={16} aria-hidden />, onSelect: () => setAsked("rotate") },
            { label: t("workers.remove"), icon: <Trash2 size={16} aria-hidden />, onSelect: () => setAsked("remove"), danger: true },
          ]}
        />
      }
    >
      <Standing worker={worker} />
      <Section title={t("workers.history")}>
        <MachineCharts worker={worker} />
      </Section>
      <BenchmarkSection worker={worker} />
      <LimitsSection worker={worker} />
      <WorkerHistory worker={worker} />
      <Section title={t("workers.hardware")}>
        <HardwareFacts worker={worker} />
      </Section>
      {asked === "rotate" && <RotateKey worker={worker} onClose={() => setAsked(null)} />}
      {asked === "remove" && <RemoveWorker worker={worker} onClose={() => setAsked(null)} onRemoved={onClose} />}
    </Sheet>
  )
}

/** What it does now, what it is for, and the verbs. */
function Standing({ worker }: { worker: WorkerOut }) {
  const { t, phrase } = useWords()
  const run = useVerbs()
  const setType = useMutation({ mutationFn: (worker_type: WorkerOut["worker_type"]) => change(worker, { worker_type }) })
  return (
    <div className="mb-7 space-y-3">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2 text-sm">
        <StateBadge state={worker.status} />
        <span className="text-muted">
          {t("workers.seen")} <Ago time={worker.last_seen_at} />
        </span>
      </div>
      {worker.unavailable && !worker.paused && !worker.draining && <p className="rounded-lg bg-warn-soft px-3 py-2 text-sm text-warn">{phrase(worker.unavailable)}</p>}
      <WorkingOn worker={worker} />
      <div className="flex flex-wrap items-center gap-2">
        {verbsFor(worker).map((verb) => {
          const Icon = VERB_ICONS[verb]
          return (
            <Button key={verb} title={t(`workers.${verb}_text`)} onClick={() => void run(verb, [worker])}>
              <Icon size={16} aria-hidden /> {t(`workers.${verb}`)}
            </Button>
          )
        })}
        <label className="ml-auto flex items-center gap-2 text-sm text-muted max-sm:ml-0">
          {t("workers.type")}
          <Select className="!w-auto text-ink" value={worker.worker_type} onChange={(event) => setType.mutate(event.target.value as WorkerOut["worker_type"])}>
            <TypeOptions />
          </Select>
        </label>
      </div>
      <ErrorNote error={setType.error} />
    </div>
  )
}

function WorkingOn({ worker: { current_job: job } }: { worker: WorkerOut }) {
  const { t } = useWords()
  if (!job) return null
  return (
    <div className="card p-4">
      <Progress
        label={t("workers.job")}
        phase={job.name}
        fraction={typeof job.percent === "number" ? job.percent / 100 : null}
        etaSeconds={job.eta_seconds}
        actions={
          <Link to={jobLink(job)} className="text-sm text-accent hover:underline">
            {t("workers.open_job")}
          </Link>
        }
      />
    </div>
  )
}
