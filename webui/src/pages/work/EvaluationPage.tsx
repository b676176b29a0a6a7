import { Link, useParams } from "react-router"
import { useOne } from "~/api/queries"
import type { DatasetOut, EvaluationOut, ModelOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { useFieldWords } from "~/i18n/fields"
import { Loaded, Page } from "~/parts/Page"
import { Figure } from "~/parts/Values"
import { WorkFrame, WorkTimes } from "./WorkFrame"

export default function EvaluationPage() {
  const { t } = useWords()
  const { id = "" } = useParams()
  const job = useOne<EvaluationOut>(`/evaluations/${id}`)
  if (job.data) return <Detail key={id} job={job.data} />
  return (
    <Page title={t("evaluations.title")} parent={{ label: t("nav.models"), to: "/models" }}>
      <Loaded query={job}>{() => null}</Loaded>
    </Page>
  )
}

function Detail({ job }: { job: EvaluationOut }) {
  const { t, format } = useWords()
  const { measure } = useFieldWords()
  const model = useOne<ModelOut>(job.model_id ? `/models/${job.model_id}` : null).data
  const dataset = useOne<DatasetOut>(job.dataset_id ? `/datasets/${job.dataset_id}` : null).data
  return (
    <WorkFrame
      subject="evaluations"
      job={job}
      parent={{ label: model?.name ?? t("nav.models"), to: job.model_id ? `/models/${job.model_id}?tab=evaluations` : "/models" }}
      canRetry={false}
      loss={t("evaluations.delete_text")}
      facts={
        <>
          {measure(job.evaluator)}
          {dataset && (
            <>
              {" · "}
              <Link to={`/datasets/${dataset.id}`} className="underline hover:text-ink">
                {dataset.name}
              </Link>
            </>
          )}
          {" · "}
          <WorkTimes job={job} />
        </>
      }
      result={
        job.metrics && (
          <div className="mb-5 grid gap-3 sm:grid-cols-3">
            {Object.entries(job.metrics).map(([name, metric]) => (
              <Figure
                key={name}
                name={measure(name)}
                value={metric.stderr === null ? format.metric(metric.value) : `${format.metric(metric.value)} ± ${format.metric(metric.stderr)}`}
                hint={t(metric.better === "lower" ? "evaluations.lower" : "evaluations.higher")}
              />
            ))}
          </div>
        )
      }
    />
  )
}
