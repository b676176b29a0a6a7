import { Gauge } from "lucide-react"
import type { WorkerOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { Section } from "~/parts/Page"
import { Ago } from "~/parts/Values"
import { useMeasure } from "./actions"

/** How fast the machine measured itself; jobs are placed by it where no job like them has run there yet. */
export function BenchmarkSection({ worker }: { worker: WorkerOut }) {
  const { t, format } = useWords()
  const measure = useMeasure()
  const { benchmark } = worker
  const again = (
    <Button disabled={worker.status === "offline"} onClick={() => void measure(worker)}>
      <Gauge size={16} aria-hidden /> {t(benchmark ? "workers.measure_again" : "workers.measure")}
    </Button>
  )
  return (
    <Section title={t("workers.benchmark")} actions={again}>
      {benchmark ? (
        <div className="card p-4">
          <dl className="grid grid-cols-2 gap-x-4 gap-y-3 sm:grid-cols-4">
            <Value name={t("workers.score")} value={format.number(benchmark.score, 1)} hint={t("workers.score_hint")} />
            <Value name={["TFLOP/s", benchmark.precision].filter(Boolean).join(" ")} value={format.number(benchmark.tflops, 1)} />
            <Value name={t("workers.bandwidth")} value={`${format.number(benchmark.bandwidth_gbs, 0)} ${t("workers.gigabytes_a_second")}`} />
            <Value name={t("workers.max_batch")} value={format.number(benchmark.max_batch)} />
          </dl>
          <p className="mt-3 text-sm text-muted">
            {benchmark.fallback && <span className="text-warn">{t("workers.fallback")} </span>}
            {t("workers.measured")} <Ago time={benchmark.measured_at} />
          </p>
        </div>
      ) : (
        <p className="card p-4 text-sm text-muted">{t("workers.not_measured")}</p>
      )}
    </Section>
  )
}

function Value({ name, value, hint }: { name: string; value: string; hint?: string }) {
  return (
    <div className="min-w-0" title={hint}>
      <dt className="text-sm text-muted">{name}</dt>
      <dd className="num font-semibold">{value}</dd>
    </div>
  )
}
