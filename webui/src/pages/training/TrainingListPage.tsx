import type { ColumnDef } from "@tanstack/react-table"
import { Play } from "lucide-react"
import { useMemo } from "react"
import { Link, useNavigate } from "react-router"
import { useList } from "~/api/queries"
import type { TrainingJobOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { ButtonLink } from "~/parts/Button"
import { EmptyState } from "~/parts/EmptyState"
import { Loaded, Page } from "~/parts/Page"
import { StateBadge } from "~/parts/StateBadge"
import { Table } from "~/parts/Table"
import { Ago } from "~/parts/Values"
import { Queue } from "./Queue"

export default function TrainingListPage() {
  const { t } = useWords()
  const navigate = useNavigate()
  const jobs = useList<TrainingJobOut>("/training-jobs")
  const columns = useColumns()
  const newButton = (
    <ButtonLink look="main" to="/training/new">
      {t("training.new")}
    </ButtonLink>
  )
  return (
    <Page title={t("nav.training")} about={t("training.about")} actions={newButton}>
      <Queue />
      <Loaded query={jobs}>
        {({ items, total }) =>
          items.length > 0 ? (
            <Table
              label={t("nav.training")}
              rows={items}
              total={total}
              columns={columns}
              rowId={(row) => String(row.id)}
              sorting={[{ id: "created_at", desc: true }]}
              onOpen={(row) => void navigate(`/training/${row.id}`)}
            />
          ) : (
            <EmptyState icon={Play} title={t("training.empty")} text={t("training.empty_text")} action={newButton} />
          )
        }
      </Loaded>
    </Page>
  )
}

function useColumns(): ColumnDef<TrainingJobOut>[] {
  const { t, format } = useWords()
  return useMemo(
    () => [
      {
        accessorKey: "name",
        header: t("common.name"),
        enableHiding: false,
        cell: ({ row: { original } }) => (
          <Link to={`/training/${original.id}`} className="font-medium hover:underline">
            {original.name}
          </Link>
        ),
      },
      { accessorKey: "status", header: t("common.state"), cell: ({ row }) => <StateBadge state={row.original.status} /> },
      {
        id: "progress",
        accessorFn: (row) => row.progress.percent ?? (row.status === "completed" ? 100 : 0),
        header: t("training.progress"),
        cell: ({ row }) => <MiniProgress job={row.original} />,
        meta: { from: "sm" },
      },
      { id: "model", accessorFn: (row) => row.model_name ?? `#${row.model_id}`, header: t("training.model"), meta: { from: "md" } },
      { id: "dataset", accessorFn: (row) => row.dataset_name ?? `#${row.dataset_id}`, header: t("training.dataset"), meta: { from: "lg" } },
      {
        id: "loss",
        accessorFn: (row) => row.metrics_latest.loss ?? null,
        header: t("training.loss"),
        cell: ({ row }) => format.metric(row.original.metrics_latest.loss),
        meta: { align: "right", from: "lg" },
      },
      {
        accessorKey: "created_at",
        header: t("common.created"),
        cell: ({ row }) => <Ago time={row.original.created_at} />,
        meta: { align: "right", from: "sm" },
      },
    ],
    [t, format],
  )
}

function MiniProgress({ job }: { job: TrainingJobOut }) {
  const { format } = useWords()
  if (job.status !== "running") return <span className="text-muted">–</span>
  const percent = job.progress.percent ?? 0
  return (
    <span className="flex items-center gap-2">
      <span className="h-1.5 w-20 overflow-hidden rounded-full bg-sunken">
        <span className="block h-full bg-accent" style={{ width: `${percent}%` }} />
      </span>
      <span className="num text-muted">{format.percent(percent / 100)}</span>
    </span>
  )
}
