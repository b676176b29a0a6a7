import type { ColumnDef } from "@tanstack/react-table"
import { CircleMinus } from "lucide-react"
import { useMemo } from "react"
import { Link } from "react-router"
import type { CurrentJob, WorkerOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { StateDot } from "~/parts/StateBadge"
import { Ago } from "~/parts/Values"
import { cpuOf, deviceOf, gpuOf, ramOf, vramOf, type Share } from "./figures"
import { jobLink } from "./job_link"
import { Meter } from "./Meter"
import { WorkerMenu } from "./WorkerMenu"

export function useColumns(open: (id: number) => void): ColumnDef<WorkerOut>[] {
  const { t } = useWords()
  return useMemo(
    () => [
      {
        accessorKey: "name",
        header: t("common.name"),
        enableHiding: false,
        cell: ({ row: { original } }) => <Name worker={original} onOpen={() => open(original.id)} />,
      },
      { id: "status", accessorFn: (row) => t(`state.${row.status}`), header: t("common.state"), cell: ({ row }) => <State worker={row.original} /> },
      {
        id: "gpu",
        accessorFn: gpuOf,
        sortUndefined: "last",
        header: t("workers.gpu"),
        cell: ({ row }) => <Percent label={t("workers.gpu_use")} share={gpuOf(row.original)} />,
        meta: { from: "sm" },
      },
      {
        id: "vram",
        accessorFn: (row) => vramOf(row)?.share,
        sortUndefined: "last",
        header: t("workers.vram"),
        cell: ({ row }) => <Memory label={t("workers.vram")} memory={vramOf(row.original)} />,
        meta: { from: "md" },
      },
      {
        id: "cpu",
        accessorFn: cpuOf,
        sortUndefined: "last",
        header: t("workers.cpu"),
        cell: ({ row }) => <Percent label={t("workers.cpu_use")} share={cpuOf(row.original)} />,
        meta: { from: "lg" },
      },
      {
        id: "ram",
        accessorFn: (row) => ramOf(row)?.share,
        sortUndefined: "last",
        header: t("workers.ram"),
        cell: ({ row }) => <Memory label={t("workers.ram")} memory={ramOf(row.original)} />,
        meta: { from: "lg" },
      },
      {
        id: "job",
        accessorFn: (row) => row.current_job?.name,
        sortUndefined: "last",
        header: t("workers.job"),
        cell: ({ row }) => <Job job={row.original.current_job} />,
        meta: { from: "md" },
      },
      { id: "type", accessorFn: (row) => t(`worker_type.${row.worker_type}`), header: t("workers.type"), meta: { from: "xl" } },
      {
        id: "last_seen_at",
        accessorFn: (row) => row.last_seen_at ?? undefined,
        sortUndefined: "last",
        sortDescFirst: true,
        header: t("workers.seen"),
        cell: ({ row }) => <Ago time={row.original.last_seen_at} short />,
        meta: { from: "xl" },
      },
      {
        id: "actions",
        enableSorting: false,
        enableHiding: false,
        header: () => <span className="sr-only">{t("common.more_actions")}</span>,
        cell: ({ row }) => <WorkerMenu worker={row.original} />,
        meta: { narrow: true, pinned: true },
      },
    ],
    [t, open],
  )
}

/** The name; below it what the machine is or, where there is no room for a column, what it does. */
function Name({ worker, onOpen }: { worker: WorkerOut; onOpen: () => void }) {
  const device = deviceOf(worker)
  const job = worker.current_job
  return (
    <span className="block min-w-0 leading-tight">
      <button type="button" onClick={onOpen} className="block max-w-full truncate text-left font-medium hover:underline">
        {worker.name}
      </button>
      <span className={`block truncate text-xs text-muted ${job ? "max-sm:hidden" : ""}`} title={device}>
        {device}
      </span>
      {job && <span className="block truncate text-xs text-muted sm:hidden">{job.name}</span>}
    </span>
  )
}

/** The state; why a machine that is there is offered nothing, on hover. */
function State({ worker }: { worker: WorkerOut }) {
  const { phrase } = useWords()
  const why = worker.unavailable ? phrase(worker.unavailable) : undefined
  return (
    <span className="inline-flex items-center gap-1.5" title={why}>
      <StateDot state={worker.status} />
      {why && worker.status === "idle" && <CircleMinus size={14} className="text-warn" aria-label={why} />}
    </span>
  )
}

function Percent({ label, share }: { label: string; share: number | undefined }) {
  const { format } = useWords()
  return <Meter label={label} share={share} text={format.percent(share)} />
}

function Memory({ label, memory }: { label: string; memory: Share | undefined }) {
  const { t, format } = useWords()
  if (!memory) return <Meter label={label} share={undefined} text="" />
  const of = t("workers.used_of", { used: format.bytes(memory.used), total: format.bytes(memory.total) })
  return <Meter label={label} share={memory.share} text={format.bytes(memory.used)} title={of} warns />
}

/** What it works on, how far that is and how long it still takes. */
function Job({ job }: { job: CurrentJob | null }) {
  const { t, format } = useWords()
  if (!job) return <span className="text-muted">–</span>
  const facts = [
    typeof job.percent === "number" ? format.percent(job.percent / 100) : null,
    typeof job.eta_seconds === "number" ? t("progress.eta", { time: format.duration(job.eta_seconds) }) : null,
  ].filter(Boolean)
  return (
    <span className="block min-w-0 leading-tight">
      <Link to={jobLink(job)} className="block truncate hover:underline">
        {job.name}
      </Link>
      <span className="flex items-center gap-2 text-xs text-muted">
        {typeof job.percent === "number" && (
          <span aria-hidden className="h-1 w-16 shrink-0 overflow-hidden rounded-full bg-sunken">
            <span className="block h-full bg-accent" style={{ width: `${job.percent}%` }} />
          </span>
        )}
        <span className="num truncate">{facts.join(" · ")}</span>
      </span>
    </span>
  )
}
