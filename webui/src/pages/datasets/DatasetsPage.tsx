import type { ColumnDef } from "@tanstack/react-table"
import { Database } from "lucide-react"
import { useMemo, useState } from "react"
import { Link, useNavigate, useSearchParams } from "react-router"
import { remove } from "~/api/http"
import { useList, useRefresh } from "~/api/queries"
import type { DatasetOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { Confirm } from "~/parts/Confirm"
import { EmptyState } from "~/parts/EmptyState"
import { Loaded, Page } from "~/parts/Page"
import { StateBadge } from "~/parts/StateBadge"
import { Table } from "~/parts/Table"
import { Ago, Bytes, Count } from "~/parts/Values"
import { useUploads } from "~/state/uploads"
import { AddDatasetDialog } from "./AddDatasetDialog"
import { datasetState, useShape } from "./shape"
import { SampleButton } from "./SampleButton"
import { Uploads } from "./Uploads"

export default function DatasetsPage() {
  const { t } = useWords()
  const [params, setParams] = useSearchParams()
  const datasets = useList<DatasetOut>("/datasets")
  const uploads = useUploads()
  const add = () => setParams({ add: "1" })
  const addButton = (
    <Button look="main" onClick={add}>
      {t("datasets.add")}
    </Button>
  )
  return (
    <Page title={t("nav.datasets")} about={t("datasets.about")} actions={addButton}>
      <Uploads />
      <Loaded query={datasets}>
        {({ items, total }) =>
          items.length > 0 ? (
            <DatasetTable items={items} total={total} />
          ) : (
            uploads.length === 0 && <EmptyState icon={Database} title={t("datasets.empty")} text={t("datasets.empty_text")} action={<>{addButton}<SampleButton /></>} />
          )
        }
      </Loaded>
      <AddDatasetDialog open={params.has("add")} onClose={() => setParams({}, { replace: true })} />
    </Page>
  )
}

function DatasetTable({ items, total }: { items: DatasetOut[]; total: number }) {
  const { t } = useWords()
  const navigate = useNavigate()
  const refresh = useRefresh()
  const columns = useColumns()
  const [doomed, setDoomed] = useState<DatasetOut[]>([])
  const rows = doomed.reduce((sum, dataset) => sum + (dataset.row_count ?? 0), 0)
  return (
    <>
      <Table
        label={t("nav.datasets")}
        rows={items}
        total={total}
        columns={columns}
        rowId={(row) => String(row.id)}
        sorting={[{ id: "created_at", desc: true }]}
        onOpen={(row) => void navigate(`/datasets/${row.id}`)}
        bulk={(chosen) => (
          <Button look="danger" onClick={() => setDoomed(chosen)}>
            {t("common.delete")}
          </Button>
        )}
      />
      <Confirm
        open={doomed.length > 0}
        onClose={() => setDoomed([])}
        title={t("datasets.delete_many", { count: doomed.length })}
        action={t("common.delete")}
        onConfirm={async () => {
          for (const { id } of doomed) await remove(`/datasets/${id}`)
          refresh("datasets")
        }}
      >
        {t("datasets.delete_text", { count: rows })}
      </Confirm>
    </>
  )
}

function useColumns(): ColumnDef<DatasetOut>[] {
  const { t } = useWords()
  const shape = useShape()
  return useMemo(
    () => [
      {
        accessorKey: "name",
        header: t("common.name"),
        enableHiding: false,
        cell: ({ row: { original } }) => (
          <Link to={`/datasets/${original.id}`} className="font-medium hover:underline">
            {original.name}
          </Link>
        ),
      },
      { id: "state", accessorFn: datasetState, header: t("common.state"), cell: ({ row }) => <StateBadge state={datasetState(row.original)} /> },
      { id: "shape", accessorFn: (row) => shape(row.schema_kind), header: t("datasets.shape"), meta: { from: "md" } },
      {
        accessorKey: "row_count",
        header: t("datasets.rows"),
        cell: ({ row }) => <Count value={row.original.row_count} />,
        meta: { align: "right", from: "sm" },
      },
      {
        accessorKey: "problems_count",
        header: t("datasets.problems"),
        cell: ({ row }) => <Count value={row.original.problems_count} />,
        meta: { align: "right", from: "lg" },
      },
      { accessorKey: "size", header: t("common.size"), cell: ({ row }) => <Bytes value={row.original.size} />, meta: { align: "right", from: "md" } },
      {
        accessorKey: "created_at",
        header: t("common.created"),
        cell: ({ row }) => <Ago time={row.original.created_at} />,
        meta: { align: "right", from: "sm" },
      },
    ],
    [t, shape],
  )
}
