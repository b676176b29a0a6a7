import { useMutation } from "@tanstack/react-query"
import { useState } from "react"
import { Link } from "react-router"
import { patch, post, remove } from "~/api/http"
import { useRefresh } from "~/api/queries"
import type { WorkerOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { Confirm } from "~/parts/Confirm"
import { Dialog } from "~/parts/Dialog"
import { ErrorNote } from "~/parts/ErrorNote"
import { Select } from "~/parts/Field"
import { StateBadge } from "~/parts/StateBadge"
import { Ago, Bytes, Facts } from "~/parts/Values"

const TYPES = ["both", "fine_tuner", "prompter"] as const

type Verb = "pause" | "drain" | "resume"

function verbsFor(status: WorkerOut["status"]): Verb[] {
  if (status === "offline") return []
  return status === "paused" || status === "draining" ? ["resume"] : ["pause", "drain"]
}

export function WorkerPanel({ worker, onClose }: { worker: WorkerOut; onClose: () => void }) {
  const { t, format } = useWords()
  const refresh = useRefresh()
  const [isRemoving, setIsRemoving] = useState(false)
  const act = useMutation({
    mutationFn: (step: () => Promise<unknown>) => step(),
    onSuccess: () => refresh("workers"),
  })
  const { hardware, benchmark, metrics, current_job } = worker
  const job = current_job && (
    <Link to={current_job.kind === "training" ? `/training/${current_job.id}` : "/models"} className="text-accent hover:underline">
      {current_job.name}
    </Link>
  )
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title={worker.name}
      footer={
        <>
          <Button look="danger" onClick={() => setIsRemoving(true)}>
            {t("workers.remove")}
          </Button>
          {verbsFor(worker.status).map((verb) => (
            <Button key={verb} busy={act.isPending} title={t(`workers.${verb}_text`)} onClick={() => act.mutate(() => post(`/workers/${worker.id}/${verb}`))}>
              {t(`workers.${verb}`)}
            </Button>
          ))}
        </>
      }
    >
      <div className="mb-4 flex flex-wrap items-center gap-3">
        <StateBadge state={worker.status} />
        <Select
          className="!w-auto"
          aria-label={t("workers.type")}
          value={worker.worker_type}
          onChange={(event) => act.mutate(() => patch(`/workers/${worker.id}`, { worker_type: event.target.value }))}
        >
          {TYPES.map((type) => (
            <option key={type} value={type}>
              {t(`worker_type.${type}`)}
            </option>
          ))}
        </Select>
        <span className="text-sm text-muted">
          {t("workers.seen")} <Ago time={worker.last_seen_at} />
        </span>
      </div>
      <ErrorNote error={act.error} />
      <Facts
        items={[
          [t("workers.job"), job ?? "–"],
          ["GPU", hardware?.gpu ?? t("workers.no_gpu")],
          [t("workers.vram"), hardware?.vram_total ? <Bytes value={hardware.vram_total} /> : "–"],
          ["CUDA", [hardware?.cuda, hardware?.driver].filter(Boolean).join(" · ") || "–"],
          [t("workers.cpu"), hardware ? t("workers.cpu_of", { cpu: hardware.cpu || "–", count: hardware.cores ?? 0 }) : "–"],
          [t("workers.ram"), <Bytes value={hardware?.ram} />],
          [t("workers.bf16"), hardware ? t(hardware.bf16 ? "common.yes" : "common.no") : "–"],
          ["PyTorch", hardware?.torch ?? "–"],
          [t("workers.platform"), hardware?.platform || "–"],
          [t("workers.free_disk"), <Bytes value={metrics?.disk_free} />],
          [
            t("workers.score"),
            benchmark ? (
              <>
                {format.number(benchmark.score, 1)} · {format.number(benchmark.tflops, 1)} TFLOP/s ·{" "}
                {format.number(benchmark.bandwidth_gbs, 0)} {t("workers.gigabytes_a_second")} <Ago time={benchmark.measured_at} />
                {benchmark.fallback && ` · ${t("workers.fallback")}`}
              </>
            ) : (
              "–"
            ),
          ],
          [t("workers.version"), worker.version ?? "–"],
          [t("common.created"), <Ago time={worker.created_at} />],
          [t("common.id"), String(worker.id)],
        ]}
      />
      <Confirm
        open={isRemoving}
        onClose={() => setIsRemoving(false)}
        title={t("workers.remove_one", { name: worker.name })}
        action={t("workers.remove")}
        onConfirm={async () => {
          await remove(`/workers/${worker.id}`)
          refresh("workers")
          onClose()
        }}
      >
        {current_job ? t("workers.remove_busy", { job: current_job.name }) : t("workers.remove_text")}
      </Confirm>
    </Dialog>
  )
}
