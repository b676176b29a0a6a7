import type { ColumnDef } from "@tanstack/react-table"
import { Server } from "lucide-react"
import { useMemo } from "react"
import { useSearchParams } from "react-router"
import { useList, useOne } from "~/api/queries"
import type { WorkerOut, WorkersSummary } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { EmptyState } from "~/parts/EmptyState"
import { Loaded, Page } from "~/parts/Page"
import { StateBadge } from "~/parts/StateBadge"
import { Table } from "~/parts/Table"
import { Ago, Figure } from "~/parts/Values"
import { AddWorkerDialog } from "./AddWorkerDialog"
import { MasterKeys } from "./MasterKeys"
import { Meter } from "./Meter"
import { WorkerPanel } from "./WorkerPanel"

export default function WorkersPage() {
  const { t } = useWords()
  const [params, setParams] = useSearchParams()
  const workers = useList<WorkerOut>("/workers")
  const columns = useColumns((id) => setParams({ worker: id }))
  const selected = params.get("worker")
  const chosen = workers.data?.items.find(({ id }) => String(id) === selected)
  const close = () => setParams({}, { replace: true })
  const addButton = (
    <Button look="main" onClick={() => setParams({ add: "1" })}>
      {t("workers.add")}
    </Button>
  )
  return (
    <Page wide title={t("nav.workers")} about={t("workers.about")} actions={addButton}>
      <Summary />
      <Loaded query={workers}>
        {({ items, total }) =>
          items.length > 0 ? (
            <Table
              label={t("nav.workers")}
              rows={items}
              total={total}
              columns={columns}
              rowId={(row) => String(row.id)}
              sorting={[{ id: "name", desc: false }]}
              selected={selected}
              onOpen={(row) => setParams({ worker: String(row.id) })}
            />
          ) : (
            <EmptyState icon={Server} title={t("workers.empty")} text={t("workers.empty_text")} action={addButton} />
          )
        }
      </Loaded>
      <MasterKeys />
      {chosen && <WorkerPanel worker={chosen} onClose={close} />}
      <AddWorkerDialog open={params.has("add")} onClose={close} workers={workers.data?.items ?? []} />
    </Page>
  )
}

function Summary() {
  const { t, format } = useWords()
  const summary = useOne<WorkersSummary>("/workers/summary").data
  const use = summary?.avg_gpu_utilization
  return (
    <div className="mb-6 grid grid-cols-2 gap-3 sm:grid-cols-3 lg:grid-cols-5">
      <Figure name={t("workers.total")} value={format.number(summary?.total)} />
      <Figure name={t("workers.online")} value={format.number(summary?.online)} />
      <Figure name={t("state.training")} value={format.number(summary?.training)} />
      <Figure name={t("state.idle")} value={format.number(summary?.idle)} />
      <Figure name={t("workers.average_gpu")} value={typeof use === "number" ? format.percent(use / 100) : "–"} />
    </div>
  )
}

function useColumns(open: (id: string) => void): ColumnDef<WorkerOut>[] {
  const { t, format } = useWords()
  return useMemo(
    () => [
      {
        accessorKey: "name",
        header: t("common.name"),
        enableHiding: false,
        cell: ({ row: { original } }) => (
          <button type="button" onClick={() => open(String(original.id))} className="text-left font-medium hover:underline">
            {original.name}
          </button>
        ),
      },
      { accessorKey: "status", header: t("common.state"), cell: ({ row }) => <StateBadge state={row.original.status} /> },
      { id: "type", accessorFn: (row) => t(`worker_type.${row.worker_type}`), header: t("workers.type"), meta: { from: "xl" } },
      { id: "device", accessorFn: deviceOf, header: t("workers.device"), meta: { from: "md" } },
      {
        id: "use",
        accessorFn: useOf,
        header: t("workers.use"),
        cell: ({ row }) => <Meter label={t("workers.use")} share={fraction(useOf(row.original))} text={format.percent(fraction(useOf(row.original)))} />,
        meta: { from: "sm" },
      },
      {
        id: "memory",
        accessorFn: (row) => memoryOf(row).used,
        header: t("workers.memory"),
        cell: ({ row }) => {
          const { used, total } = memoryOf(row.original)
          return <Meter label={t("workers.memory")} share={used !== null && total ? used / total : null} text={format.bytes(used)} />
        },
        meta: { from: "md" },
      },
      {
        id: "job",
        accessorFn: (row) => row.current_job?.name ?? "",
        header: t("workers.job"),
        cell: ({ row }) => <span className="line-clamp-1">{row.original.current_job?.name ?? "–"}</span>,
        meta: { from: "lg" },
      },
      {
        accessorKey: "last_seen_at",
        header: t("workers.seen"),
        cell: ({ row }) => <Ago time={row.original.last_seen_at} />,
        meta: { align: "right", from: "sm" },
      },
    ],
    [t, format, open],
  )
}

function deviceOf(worker: WorkerOut): string {
  return worker.hardware?.gpu ?? worker.hardware?.cpu ?? worker.device ?? "–"
}

/** Percent of the GPU where there is one, else of the processor. */
function useOf(worker: WorkerOut): number | null {
  return worker.metrics?.gpu_utilization ?? worker.metrics?.cpu ?? null
}

function fraction(percent: number | null): number | null {
  return percent === null ? null : percent / 100
}

function memoryOf({ metrics }: WorkerOut): { used: number | null; total: number | null } {
  if (metrics?.vram_used != null) return { used: metrics.vram_used, total: metrics.vram_total }
  return { used: metrics?.ram ?? null, total: metrics?.ram_total ?? null }
}
