import type { ColumnDef } from "@tanstack/react-table"
import { Boxes } from "lucide-react"
import { useMemo } from "react"
import { Link, useNavigate, useSearchParams } from "react-router"
import { useList } from "~/api/queries"
import type { ModelOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { EmptyState } from "~/parts/EmptyState"
import { Loaded, Page } from "~/parts/Page"
import { StateBadge } from "~/parts/StateBadge"
import { Table } from "~/parts/Table"
import { Ago, Bytes, Count } from "~/parts/Values"
import { AddModelDialog } from "./AddModelDialog"

export default function ModelsPage() {
  const { t } = useWords()
  const [params, setParams] = useSearchParams()
  const navigate = useNavigate()
  const models = useList<ModelOut>("/models")
  const columns = useColumns(models.data?.items ?? [])
  const addButton = (
    <Button look="main" onClick={() => setParams({ add: "1" })}>
      {t("models.add")}
    </Button>
  )
  return (
    <Page title={t("nav.models")} about={t("models.about")} actions={addButton}>
      <Loaded query={models}>
        {({ items, total }) =>
          items.length > 0 ? (
            <Table
              label={t("nav.models")}
              rows={items}
              total={total}
              columns={columns}
              rowId={(row) => String(row.id)}
              sorting={[{ id: "created_at", desc: true }]}
              onOpen={(row) => void navigate(`/models/${row.id}`)}
            />
          ) : (
            <EmptyState icon={Boxes} title={t("models.empty")} text={t("models.empty_text")} action={addButton} />
          )
        }
      </Loaded>
      <AddModelDialog open={params.has("add")} onClose={() => setParams({}, { replace: true })} />
    </Page>
  )
}

function useColumns(models: ModelOut[]): ColumnDef<ModelOut>[] {
  const { t } = useWords()
  return useMemo(() => {
    const names = new Map(models.map(({ id, name }) => [id, name]))
    const baseName = (model: ModelOut) => (model.base_model_id === null ? "" : (names.get(model.base_model_id) ?? `#${model.base_model_id}`))
    return [
      {
        accessorKey: "name",
        header: t("common.name"),
        enableHiding: false,
        cell: ({ row: { original } }) => (
          <Link to={`/models/${original.id}`} className="font-medium hover:underline">
            {original.name}
          </Link>
        ),
      },
      { accessorKey: "state", header: t("common.state"), cell: ({ row }) => <StateBadge state={row.original.state} /> },
      { id: "base", accessorFn: baseName, header: t("models.base"), meta: { from: "md" } },
      {
        accessorKey: "parameters",
        header: t("models.parameters"),
        cell: ({ row }) => <Count value={row.original.parameters} />,
        meta: { align: "right", from: "sm" },
      },
      {
        accessorKey: "context_length",
        header: t("models.context"),
        cell: ({ row }) => <Count value={row.original.context_length} />,
        meta: { align: "right", from: "lg" },
      },
      { accessorKey: "size", header: t("common.size"), cell: ({ row }) => <Bytes value={row.original.size} />, meta: { align: "right", from: "md" } },
      {
        accessorKey: "created_at",
        header: t("common.created"),
        cell: ({ row }) => <Ago time={row.original.created_at} />,
        meta: { align: "right", from: "sm" },
      },
    ]
  }, [t, models])
}
