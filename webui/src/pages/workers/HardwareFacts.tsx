import type { WorkerOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { CopyButton } from "~/parts/Copy"
import { Ago, Bytes, Facts } from "~/parts/Values"

/** What the machine is made of and what runs on it, as it said when it last connected. */
export function HardwareFacts({ worker }: { worker: WorkerOut }) {
  const { t } = useWords()
  const { hardware, metrics } = worker
  const yesNo = (value: boolean | undefined) => (value === undefined ? "–" : t(value ? "common.yes" : "common.no"))
  return (
    <div className="card p-4">
      <Facts
        items={[
          [t("workers.gpu"), hardware?.gpu ?? t("workers.no_gpu")],
          ...(hardware?.gpu
            ? ([
                [t("workers.vram"), <Bytes value={hardware.vram_total} />],
                ...(metrics?.vram_foreign ? [[t("workers.foreign"), <Bytes value={metrics.vram_foreign} />]] : []),
                [t("workers.driver"), [hardware.driver, hardware.cuda && `CUDA ${hardware.cuda}`].filter(Boolean).join(" · ") || "–"],
              ] as [string, React.ReactNode][])
            : []),
          [t("workers.cpu"), hardware ? t("workers.cpu_of", { cpu: hardware.cpu || "–", count: hardware.cores ?? 0 }) : "–"],
          [t("workers.ram"), <Bytes value={hardware?.ram} />],
          [t("workers.free_disk"), <Bytes value={metrics?.disk_free} />],
          [t("workers.bf16"), yesNo(hardware?.bf16)],
          [t("workers.bitsandbytes"), yesNo(hardware?.bitsandbytes)],
          ["PyTorch", hardware?.torch ?? "–"],
          [t("workers.platform"), hardware?.platform || "–"],
          [t("workers.version"), worker.version ?? "–"],
          [t("workers.added"), <Ago time={worker.created_at} />],
          [
            t("common.id"),
            <span className="num inline-flex items-center text-muted">
              {worker.id} <CopyButton text={String(worker.id)} />
            </span>,
          ],
        ]}
      />
    </div>
  )
}
