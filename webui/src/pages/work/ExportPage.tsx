import { useParams } from "react-router"
import { apiUrl } from "~/api/http"
import { useOne } from "~/api/queries"
import type { ExportOut, ModelOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Loaded, Page, Section } from "~/parts/Page"
import { FileList } from "../models/Files"
import { Parity } from "../models/Parity"
import { WorkFrame, WorkTimes } from "./WorkFrame"

export default function ExportPage() {
  const { t } = useWords()
  const { id = "" } = useParams()
  const job = useOne<ExportOut>(`/exports/${id}`)
  if (job.data) return <Detail key={id} job={job.data} />
  return (
    <Page title={t("exports.title")} parent={{ label: t("nav.models"), to: "/models" }}>
      <Loaded query={job}>{() => null}</Loaded>
    </Page>
  )
}

function Detail({ job }: { job: ExportOut }) {
  const { t } = useWords()
  const model = useOne<ModelOut>(job.model_id ? `/models/${job.model_id}` : null).data
  return (
    <WorkFrame
      subject="exports"
      job={job}
      parent={{ label: model?.name ?? t("nav.models"), to: job.model_id ? `/models/${job.model_id}?tab=exports` : "/models" }}
      canRetry
      loss={t("exports.delete_text", { count: job.files.length })}
      facts={
        <>
          {[job.format.toUpperCase(), job.params.quantization].filter(Boolean).join(" ")} · <WorkTimes job={job} />
        </>
      }
      result={
        job.files.length > 0 && (
          <Section title={t("exports.files")}>
            <div className="card p-4">
              {job.parity && <Parity parity={job.parity} />}
              <FileList files={job.files} linkTo={(path) => apiUrl(`/exports/${job.id}/download`, { path })} />
            </div>
          </Section>
        )
      }
    />
  )
}
