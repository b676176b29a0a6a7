import { useOne } from "~/api/queries"
import type { DatasetOut, StatsOut, TokenStats } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Histogram } from "~/parts/Histogram"
import { Loaded, Section, Skeletons } from "~/parts/Page"
import { Count, Figure } from "~/parts/Values"

/** What the hub calls its estimate where no tokenizer is known yet. */
const ROUGH = "characters/4"

export function Statistics({ dataset }: { dataset: DatasetOut }) {
  const { t } = useWords()
  const isReady = dataset.stats_status === "ready"
  const stats = useOne<StatsOut>(isReady ? `/datasets/${dataset.id}/stats` : null)
  if (dataset.stats_status === "running") {
    return (
      <>
        <p className="mb-3 text-sm text-muted">{t("stats.running")}</p>
        <Skeletons rows={2} height={120} />
      </>
    )
  }
  if (!isReady) return <p className="card p-6 text-center text-sm text-muted">{t(dataset.stats_status === "failed" ? "stats.failed" : "stats.none")}</p>
  return <Loaded query={stats}>{(data) => <Charts stats={data} />}</Loaded>
}

function Charts({ stats }: { stats: StatsOut }) {
  const { t } = useWords()
  const { tokens, duplicates } = stats
  return (
    <>
      <div className="mb-6 grid grid-cols-2 gap-3 lg:grid-cols-4">
        <Figure name={t("datasets.rows")} value={<Count value={stats.rows} />} />
        <Figure name={t("stats.tokens")} value={<Count value={tokens?.total} />} hint={tokens && (tokens.tokenizer === ROUGH ? t("stats.estimated") : tokens.tokenizer)} />
        <Figure name={t("stats.mean")} value={<Count value={tokens && Math.round(tokens.mean)} />} hint={tokens && t("stats.tokens_a_row")} />
        <Figure name={t("stats.duplicates")} value={<Count value={duplicates.exact} />} hint={t("stats.duplicates_hint")} />
      </div>
      {tokens && <Tokens tokens={tokens} />}
      <Columns columns={stats.columns} />
    </>
  )
}

function Tokens({ tokens }: { tokens: TokenStats }) {
  const { t, format } = useWords()
  const { edges, counts } = tokens.histogram
  const bins = counts.map((count, index) => ({ from: edges[index]!, to: edges[index + 1]!, count }))
  return (
    <Section title={t("stats.length")}>
      <div className="card p-4">
        <Histogram
          label={t("stats.length")}
          bins={bins}
          marks={[
            { at: tokens.p50, label: `p50 ${format.number(tokens.p50)}` },
            { at: tokens.p95, label: `p95 ${format.number(tokens.p95)}` },
          ]}
        />
        <p className="num mt-2 text-sm text-muted">
          {t("stats.spread", { p50: Math.round(tokens.p50), p95: Math.round(tokens.p95), max: tokens.max })}
        </p>
      </div>
    </Section>
  )
}

const KNOWN_FACTS = ["type", "nulls", "min", "mean", "max"] as const

function isKnownFact(name: string): name is (typeof KNOWN_FACTS)[number] {
  return (KNOWN_FACTS as readonly string[]).includes(name)
}

/** Whatever the hub counted for each column, one line a column. */
function Columns({ columns }: { columns: StatsOut["columns"] }) {
  const { t, format } = useWords()
  const names = [...new Set(Object.values(columns).flatMap((facts) => Object.keys(facts)))]
  if (names.length === 0) return null
  const show = (value: unknown) =>
    typeof value === "number" ? format.number(value, 1) : value === undefined || value === null ? "–" : typeof value === "string" ? value : JSON.stringify(value)
  return (
    <Section title={t("stats.columns")}>
      <div className="card overflow-x-auto" tabIndex={0} role="group" aria-label={t("stats.columns")}>
        <table className="w-full text-sm">
          <thead>
            <tr className="border-b border-line text-left text-muted">
              <th className="px-3 py-2 font-medium">{t("stats.column")}</th>
              {names.map((name) => (
                <th key={name} className="px-3 py-2 text-right font-medium">
                  {isKnownFact(name) ? t(`stats.fact_${name}`) : name.replaceAll("_", " ")}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {Object.entries(columns).map(([column, facts]) => (
              <tr key={column} className="border-b border-line last:border-0">
                <td className="px-3 py-2 font-mono text-[13px]">{column}</td>
                {names.map((name) => (
                  <td key={name} className="num px-3 py-2 text-right">
                    {show(facts[name])}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  )
}
