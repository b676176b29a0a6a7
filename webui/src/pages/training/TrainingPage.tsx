import { Copy, OctagonX, Play, RotateCw, Trash2 } from "lucide-react"
import { useMutation } from "@tanstack/react-query"
import { useState } from "react"
import { useLocation, useNavigate, useParams } from "react-router"
import { patch, post, remove } from "~/api/http"
import { storeFresh, useOne, useRefresh } from "~/api/queries"
import type { TrainingJobOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button, ButtonLink } from "~/parts/Button"
import { Confirm } from "~/parts/Confirm"
import { EditableName } from "~/parts/EditableName"
import { ErrorNote } from "~/parts/ErrorNote"
import { Menu } from "~/parts/Menu"
import { Loaded, Page } from "~/parts/Page"
import { StateBadge } from "~/parts/StateBadge"
import { Charts } from "./Charts"
import { Failed } from "./Failed"
import { JobTabs } from "./JobTabs"
import { useJobStream } from "./job_stream"
import { JobSummary } from "./JobSummary"

export default function TrainingPage() {
  const { t } = useWords()
  const { id = "" } = useParams()
  const job = useOne<TrainingJobOut>(`/training-jobs/${id}`)
  if (job.data) return <Detail key={id} job={job.data} />
  return (
    <Page title={t("nav.training")} parent={{ label: t("nav.training"), to: "/training" }}>
      <Loaded query={job}>{() => null}</Loaded>
    </Page>
  )
}

function Detail({ job }: { job: TrainingJobOut }) {
  const { t } = useWords()
  const navigate = useNavigate()
  const refresh = useRefresh()
  const stream = useJobStream(String(job.id))
  const [isDeleting, setIsDeleting] = useState(false)
  const refused = (useLocation().state as { refused?: string } | null)?.refused
  const act = useMutation({
    mutationFn: (verb: "start" | "cancel" | "resume") => post<TrainingJobOut>(`/training-jobs/${job.id}/${verb}`),
    onSettled: () => refresh("training-jobs"),
  })
  const rename = async (name: string) => storeFresh("training-jobs", await patch<TrainingJobOut>(`/training-jobs/${job.id}`, { name }))
  const isOpen = job.status === "queued" || job.status === "running"
  const isOver = !isOpen && job.status !== "pending"
  return (
    <Page
      wide
      title={job.name}
      heading={<EditableName name={job.name} onRename={rename} />}
      parent={{ label: t("nav.training"), to: "/training" }}
      state={<StateBadge state={job.status} />}
      actions={
        <>
          {job.status === "pending" && (
            <Button look="main" busy={act.isPending} onClick={() => act.mutate("start")}>
              <Play size={16} aria-hidden /> {t("training.start")}
            </Button>
          )}
          {isOpen && (
            <Button look="danger" busy={act.isPending} onClick={() => act.mutate("cancel")}>
              <OctagonX size={16} aria-hidden /> {t("training.cancel")}
            </Button>
          )}
          {(job.status === "failed" || job.status === "cancelled") && (
            <Button look={job.status === "failed" ? "plain" : "main"} busy={act.isPending} onClick={() => act.mutate("resume")}>
              <RotateCw size={16} aria-hidden /> {t("training.resume")}
            </Button>
          )}
          {job.result_model_id !== null && (
            <>
              <ButtonLink look="main" to={`/chat?model=${job.result_model_id}`}>
                {t("models.chat")}
              </ButtonLink>
              <ButtonLink to={`/models/${job.result_model_id}`}>{t("training.result")}</ButtonLink>
            </>
          )}
          <Menu
            items={[
              { label: t("training.duplicate"), icon: <Copy size={16} aria-hidden />, onSelect: () => void navigate(`/training/new?from=${job.id}`) },
              ...(isOver || job.status === "pending"
                ? [{ label: t("common.delete"), icon: <Trash2 size={16} aria-hidden />, onSelect: () => setIsDeleting(true), danger: true }]
                : []),
            ]}
          />
        </>
      }
    >
      <ErrorNote error={act.error} />
      {job.status === "failed" && <Failed job={job} onResume={() => act.mutate("resume")} />}
      {refused && job.status === "pending" && (
        <p role="alert" className="mb-4 rounded-lg bg-bad-soft px-3 py-2 text-sm text-bad">
          {refused}
        </p>
      )}
      <JobSummary job={job} progress={stream.progress} series={stream.series} />
      <JobTabs job={job} stream={stream} charts={<Charts series={stream.series} />} />
      <Confirm
        open={isDeleting}
        onClose={() => setIsDeleting(false)}
        title={t("training.delete_one", { name: job.name })}
        action={t("common.delete")}
        onConfirm={async () => {
          await remove(`/training-jobs/${job.id}`)
          refresh("training-jobs", "list")
          await navigate("/training", { replace: true })
        }}
      >
        {t("training.delete_text")}
      </Confirm>
    </Page>
  )
}
