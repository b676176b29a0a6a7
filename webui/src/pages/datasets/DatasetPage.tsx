import { Download, Trash2 } from "lucide-react"
import { useState } from "react"
import { useNavigate, useParams } from "react-router"
import { useTopic } from "~/api/live"
import { apiUrl, patch, remove } from "~/api/http"
import { storeFresh, useOne, useRefresh } from "~/api/queries"
import type { DatasetOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { ButtonLink } from "~/parts/Button"
import { Confirm } from "~/parts/Confirm"
import { CopyButton } from "~/parts/Copy"
import { EditableName } from "~/parts/EditableName"
import { Menu } from "~/parts/Menu"
import { Loaded, Page, Skeletons } from "~/parts/Page"
import { ProblemCard } from "~/parts/ProblemCard"
import { StateBadge } from "~/parts/StateBadge"
import { Tabs } from "~/parts/Tabs"
import { Ago, Bytes, Facts } from "~/parts/Values"
import { MappingForm } from "./MappingForm"
import { Preview } from "./Preview"
import { Report } from "./Report"
import { datasetState, isTrainable, useShape } from "./shape"
import { Statistics } from "./Statistics"

export default function DatasetPage() {
  const { t } = useWords()
  const { id = "" } = useParams()
  const dataset = useOne<DatasetOut>(`/datasets/${id}`)
  const refresh = useRefresh()
  useTopic(`dataset:${id}`, ({ type, data }) => {
    const fresh = type === "dataset.state" ? data : type === "snapshot" ? data.dataset : undefined
    if (!fresh) return
    const before = dataset.data
    storeFresh("datasets", fresh as DatasetOut)
    if (before?.status !== (fresh as DatasetOut).status) refresh("datasets", id, "report")
  })
  if (dataset.data) return <Detail dataset={dataset.data} />
  return (
    <Page title={t("nav.datasets")} parent={{ label: t("nav.datasets"), to: "/datasets" }}>
      <Loaded query={dataset}>{() => null}</Loaded>
    </Page>
  )
}

function Detail({ dataset }: { dataset: DatasetOut }) {
  const { t, phrase, format } = useWords()
  const navigate = useNavigate()
  const refresh = useRefresh()
  const shape = useShape()
  const [isDeleting, setIsDeleting] = useState(false)
  const isValidating = dataset.status === "validating"
  const rename = async (name: string) => storeFresh("datasets", await patch<DatasetOut>(`/datasets/${dataset.id}`, { name }))
  const download = () => location.assign(apiUrl(`/datasets/${dataset.id}/download`))
  const about = [
    shape(dataset.schema_kind),
    dataset.row_count === null ? null : t("datasets.row_count", { count: dataset.row_count }),
    dataset.bad_row_count ? t("datasets.bad_rows", { count: dataset.bad_row_count }) : null,
    format.bytes(dataset.size),
  ]
  return (
    <Page
      title={dataset.name}
      heading={<EditableName name={dataset.name} onRename={rename} />}
      parent={{ label: t("nav.datasets"), to: "/datasets" }}
      state={<StateBadge state={datasetState(dataset)} />}
      about={<span className="num">{about.filter(Boolean).join(" · ")}</span>}
      actions={
        <>
          {isTrainable(dataset) && (
            <ButtonLink look="main" to={`/training/new?dataset=${dataset.id}`}>
              {t("datasets.train")}
            </ButtonLink>
          )}
          <Menu
            items={[
              { label: t("common.download"), icon: <Download size={16} aria-hidden />, onSelect: download },
              { label: t("common.delete"), icon: <Trash2 size={16} aria-hidden />, onSelect: () => setIsDeleting(true), danger: true },
            ]}
          />
        </>
      }
    >
      {dataset.status === "invalid" && (
        <ProblemCard
          title={t("datasets.invalid")}
          message={dataset.summary ? phrase(dataset.summary) : t("datasets.invalid_text")}
          advice={t("datasets.invalid_advice")}
          action={<ButtonLink to="?tab=report">{t("datasets.see_report")}</ButtonLink>}
        />
      )}
      {dataset.needs_mapping && <MappingForm dataset={dataset} />}
      {isValidating ? (
        <>
          <p className="mb-3 text-sm text-muted">{t("datasets.validating")}</p>
          <Skeletons rows={3} height={110} />
        </>
      ) : (
        <Tabs
          label={dataset.name}
          initial={dataset.status === "invalid" ? "report" : "preview"}
          tabs={[
            { id: "preview", label: t("datasets.preview"), content: () => <Preview dataset={dataset} /> },
            {
              id: "report",
              label: t("datasets.report"),
              count: dataset.problems_count > 0 ? format.number(dataset.problems_count) : undefined,
              content: () => <Report dataset={dataset} />,
            },
            { id: "statistics", label: t("datasets.statistics"), content: () => <Statistics dataset={dataset} /> },
            { id: "details", label: t("datasets.details"), content: () => <Details dataset={dataset} /> },
          ]}
        />
      )}
      <Confirm
        open={isDeleting}
        onClose={() => setIsDeleting(false)}
        title={t("datasets.delete_one", { name: dataset.name })}
        action={t("common.delete")}
        onConfirm={async () => {
          await remove(`/datasets/${dataset.id}`)
          refresh("datasets", "list")
          await navigate("/datasets", { replace: true })
        }}
      >
        {t("datasets.delete_text", { count: dataset.row_count ?? 0 })}
      </Confirm>
    </Page>
  )
}

function Details({ dataset }: { dataset: DatasetOut }) {
  const { t } = useWords()
  const shape = useShape()
  return (
    <div className="card p-4">
      <Facts
        items={[
          [t("datasets.file"), dataset.filename],
          [t("datasets.format"), dataset.compression === "none" ? dataset.file_format : `${dataset.file_format ?? ""}.${dataset.compression}`],
          [t("datasets.shape"), shape(dataset.schema_kind)],
          [t("stats.columns"), dataset.columns.join(", ")],
          [t("common.size"), <Bytes value={dataset.size} />],
          [
            "SHA-256",
            <span className="flex items-center gap-1">
              <code className="min-w-0 truncate font-mono text-[13px]">{dataset.sha256}</code>
              <CopyButton text={dataset.sha256} />
            </span>,
          ],
          [t("common.created"), <Ago time={dataset.created_at} />],
          [t("common.id"), String(dataset.id)],
        ]}
      />
    </div>
  )
}
