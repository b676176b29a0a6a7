import { CircleCheck, LoaderCircle } from "lucide-react"
import { useState, type ReactNode } from "react"
import { Link } from "react-router"
import type { MasterKeyCreated, WorkerCreated, WorkerOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button, ButtonLink } from "~/parts/Button"
import { CopyBox } from "~/parts/Copy"
import { Segmented } from "~/parts/Field"
import { initWith, INSTALL, START, type Runtime } from "./commands"
import { deviceOf } from "./figures"

const RUNTIMES: Runtime[] = ["auto", "container", "installed"]

interface Waiting {
  arrived: WorkerOut[]
  onClose: () => void
}

/** The commands with the enrolment key in place. */
export function KeyCommands({ created, ...waiting }: Waiting & { created: MasterKeyCreated }) {
  return <Commands secret={created.key} many={created.max_enrollments !== 1} {...waiting} />
}

/** The same for a machine that is registered already and has a key of its own. */
export function OwnKeyCommands({ created, ...waiting }: Waiting & { created: WorkerCreated }) {
  return <Commands secret={created.api_key} many={false} {...waiting} />
}

function Commands({ secret, many, arrived, onClose }: Waiting & { secret: string; many: boolean }) {
  const { t } = useWords()
  const [runtime, setRuntime] = useState<Runtime>("auto")
  const isHere = arrived.length > 0
  const install = INSTALL[runtime]
  const steps: [title: string, command: string, note?: ReactNode][] = [
    ...(install ? [[t("workers.step_install"), install, runtime === "container" && t("workers.container_note")] as [string, string, ReactNode]] : []),
    [t("workers.step_init"), initWith(secret), <span className="text-warn">{t("workers.key_once")}</span>],
    [t("workers.step_start"), START],
  ]
  return (
    <div className="space-y-4">
      <Segmented<Runtime>
        label={t("workers.runtime")}
        value={runtime}
        onChange={setRuntime}
        options={RUNTIMES.map((value) => ({ value, label: t(`runtime.${value}`) }))}
      />
      {steps.map(([title, command, note], index) => (
        <Step key={title} number={index + 1} title={title}>
          <CopyBox text={command} label={t("workers.copy_command", { number: index + 1 })} />
          {note && <p className="mt-1 text-sm text-muted">{note}</p>}
        </Step>
      ))}
      <div role="status" className={`rounded-lg px-4 py-3 text-sm ${isHere ? "bg-good-soft" : "bg-sunken text-muted"}`}>
        {isHere ? <Arrived workers={arrived} many={many} /> : <Expected />}
      </div>
      <div className="flex flex-wrap justify-end gap-2">
        {isHere && <ButtonLink to="/training/new">{t("workers.next_train")}</ButtonLink>}
        <Button look={isHere ? "main" : "plain"} onClick={onClose}>
          {t(isHere ? "common.done" : "common.close")}
        </Button>
      </div>
    </div>
  )
}

function Expected() {
  const { t } = useWords()
  return (
    <div className="flex items-start gap-2">
      <LoaderCircle size={18} aria-hidden className="mt-0.5 shrink-0 animate-spin" />
      <div>
        <p>{t("workers.waiting")}</p>
        <p className="mt-1">{t("workers.waiting_help")}</p>
      </div>
    </div>
  )
}

function Arrived({ workers, many }: { workers: WorkerOut[]; many: boolean }) {
  const { t, format } = useWords()
  return (
    <div className="space-y-1.5">
      {workers.map((worker) => (
        <p key={worker.id} className="flex items-start gap-2 text-good">
          <CircleCheck size={18} aria-hidden className="mt-0.5 shrink-0" />
          <span className="min-w-0">
            <Link to={`/workers?worker=${worker.id}`} className="font-medium underline underline-offset-2">
              {t("workers.arrived", { name: worker.name })}
            </Link>{" "}
            <span className="text-ink">{[deviceOf(worker), format.bytes(worker.hardware?.vram_total ?? worker.hardware?.ram)].filter(Boolean).join(" · ")}</span>
          </span>
        </p>
      ))}
      <p>{t("workers.next_text")}</p>
      {many && <p className="text-muted">{t("workers.next_more")}</p>}
    </div>
  )
}

function Step({ number, title, children }: { number: number; title: string; children: ReactNode }) {
  return (
    <div className="flex gap-3">
      <span className="num mt-0.5 inline-flex size-6 shrink-0 items-center justify-center rounded-full bg-accent-soft text-sm font-medium text-accent">
        {number}
      </span>
      <div className="min-w-0 flex-1">
        <p className="mb-1.5 text-sm font-medium">{title}</p>
        {children}
      </div>
    </div>
  )
}
