import { CircleAlert, CircleCheck, TriangleAlert } from "lucide-react"
import { useOne } from "~/api/queries"
import type { DatasetOut, ReportOut, RowProblem } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Loaded } from "~/parts/Page"

/** What is wrong with which rows, worst first, each with its place. */
export function Report({ dataset }: { dataset: DatasetOut }) {
  const { t, phrase } = useWords()
  const report = useOne<ReportOut>(`/datasets/${dataset.id}/report`)
  return (
    <Loaded query={report}>
      {({ summary, problems }) => (
        <div>
          <p className="mb-3">{summary && phrase(summary)}</p>
          {problems.length === 0 ? (
            <p className="card flex items-center gap-2 p-4 text-sm text-good">
              <CircleCheck size={17} aria-hidden /> {t("report.clean")}
            </p>
          ) : (
            <ul className="card divide-y divide-line">
              {problems.map((problem, index) => (
                <Row key={index} problem={problem} />
              ))}
            </ul>
          )}
        </div>
      )}
    </Loaded>
  )
}

function Row({ problem }: { problem: RowProblem }) {
  const { t, phrase } = useWords()
  const isWarning = problem.level === "warning"
  const Icon = isWarning ? TriangleAlert : CircleAlert
  const place = [
    problem.row === null ? null : t("report.row", { row: problem.row }),
    problem.line === null ? null : t("report.line", { line: problem.line }),
    problem.column === null ? null : t("report.column", { column: problem.column }),
  ].filter(Boolean)
  return (
    <li className="flex gap-3 px-4 py-3 text-sm">
      <Icon size={17} aria-hidden className={`mt-0.5 shrink-0 ${isWarning ? "text-warn" : "text-bad"}`} />
      <div className="min-w-0 flex-1">
        <p>{phrase(problem.message)}</p>
        <p className="num text-muted">
          {[isWarning ? t("report.warning") : t("report.error"), ...place].join(" · ")}
          <code className="ml-2 font-mono text-xs">{problem.code}</code>
        </p>
      </div>
      {problem.count > 1 && <span className="num shrink-0 text-muted">{t("report.rows", { count: problem.count })}</span>}
    </li>
  )
}
