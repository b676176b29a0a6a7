import { OctagonX, RotateCw, Trash2 } from "lucide-react"
import { useMutation } from "@tanstack/react-query"
import { useState, type ReactNode } from "react"
import { useNavigate } from "react-router"
import { post, remove } from "~/api/http"
import { useRefresh } from "~/api/queries"
import type { EvaluationOut, ExportOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { Confirm } from "~/parts/Confirm"
import { ErrorNote } from "~/parts/ErrorNote"
import { LogView } from "~/parts/LogView"
import { Menu } from "~/parts/Menu"
import { Page } from "~/parts/Page"
import { ProblemCard } from "~/parts/ProblemCard"
import { Progress } from "~/parts/Progress"
import { StateBadge } from "~/parts/StateBadge"
import { Tabs } from "~/parts/Tabs"
import { Ago } from "~/parts/Values"
import { usePhase } from "../training/phase"
import { Timeline } from "../training/Timeline"
import { useJobLog } from "./job_log"

interface Props {
  subject: "evaluations" | "exports"
  job: EvaluationOut | ExportOut
  /** Where it belongs: the model's tab. */
  parent: { label: string; to: string }
  canRetry: boolean
  /** What will be lost with it. */
  loss: string
  facts: ReactNode
  result: ReactNode
}

/** One evaluation or export: how it stands, what came of it, its log and what happened when. */
export function WorkFrame({ subject, job, parent, canRetry, loss, facts, result }: Props) {
  const { t, phrase } = useWords()
  const navigate = useNavigate()
  const refresh = useRefresh()
  const phase = usePhase()
  const [isDeleting, setDeleting] = useState(false)
  const path = `/${subject}/${job.id}`
  const live = useJobLog(path, job.id)
  const act = useMutation({ mutationFn: (verb: "cancel" | "retry") => post(`${path}/${verb}`), onSettled: () => refresh(subject) })
  const isOpen = ["pending", "queued", "running"].includes(job.status)
  const percent = live.progress?.percent ?? job.percent
  return (
    <Page
      title={job.name}
      parent={parent}
      state={<StateBadge state={job.status} />}
      about={facts}
      actions={
        <>
          {isOpen && (
            <Button look="danger" busy={act.isPending} onClick={() => act.mutate("cancel")}>
              <OctagonX size={16} aria-hidden /> {t("common.cancel")}
            </Button>
          )}
          {canRetry && (job.status === "failed" || job.status === "cancelled") && (
            <Button look="main" busy={act.isPending} onClick={() => act.mutate("retry")}>
              <RotateCw size={16} aria-hidden /> {t("common.try_again")}
            </Button>
          )}
          <Menu items={isOpen ? [] : [{ label: t("common.delete"), icon: <Trash2 size={16} aria-hidden />, danger: true, onSelect: () => setDeleting(true) }]} />
        </>
      }
    >
      <ErrorNote error={act.error} />
      {job.failure && (
        <ProblemCard
          title={t(`failure.${job.failure.reason}`)}
          message={phrase(job.failure.message)}
          line={job.failure.line}
          advice={job.failure.advice && phrase(job.failure.advice)}
        />
      )}
      {job.status === "queued" && <p className="card mb-4 p-4 text-sm">{job.waiting ? phrase(job.waiting) : t("training.queued_text")}</p>}
      {job.status === "running" && (
        <section className="card mb-4 p-4">
          <Progress
            label={job.name}
            phase={phase(live.progress?.phase ?? job.phase)}
            fraction={typeof percent === "number" ? percent / 100 : null}
            etaSeconds={live.progress?.eta_seconds}
            facts={[job.worker_name]}
          />
        </section>
      )}
      {result}
      <Tabs
        label={job.name}
        tabs={[
          { id: "log", label: t("training.log"), content: () => <LogView lines={live.lines} isLoaded={live.isLoaded} label={t("training.log")} /> },
          { id: "timeline", label: t("training.timeline"), content: () => <Timeline path={path} /> },
        ]}
      />
      <Confirm
        open={isDeleting}
        onClose={() => setDeleting(false)}
        title={t("training.delete_one", { name: job.name })}
        action={t("common.delete")}
        onConfirm={async () => {
          await remove(path)
          await navigate(parent.to, { replace: true })
          refresh(subject, "list")
          refresh("models")
        }}
      >
        {loss}
      </Confirm>
    </Page>
  )
}

/** On which machine, and when. */
export function WorkTimes({ job }: { job: EvaluationOut | ExportOut }) {
  return (
    <>
      {job.worker_name && <>{job.worker_name} · </>}
      <Ago time={job.finished_at ?? job.started_at ?? job.created_at} />
    </>
  )
}
