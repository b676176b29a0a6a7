import { useState } from "react"
import type { MasterKeyCreated, WorkerCreated, WorkerOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Dialog } from "~/parts/Dialog"
import { Segmented } from "~/parts/Field"
import { KeyCommands, OwnKeyCommands } from "./Commands"
import { KeyForm } from "./KeyForm"
import { RegisterForm } from "./RegisterForm"

interface Props {
  open: boolean
  onClose: () => void
  workers: WorkerOut[]
}

type Made = { kind: "key"; created: MasterKeyCreated; known: ReadonlySet<number> } | { kind: "one"; created: WorkerCreated }
type Way = "key" | "one"

/** A key for as many machines as wanted, or one machine by hand; then its commands, until a machine is here. */
export function AddWorkerDialog({ open, onClose, workers }: Props) {
  const { t } = useWords()
  const [made, setMade] = useState<Made | null>(null)
  const [way, setWay] = useState<Way>("key")
  const close = () => {
    setMade(null)
    setWay("key")
    onClose()
  }
  return (
    <Dialog open={open} onClose={close} wide={made !== null} sticky={made !== null} title={t("workers.add")} description={made ? t("workers.commands_text") : null}>
      {made === null && (
        <>
          <div className="mb-4">
            <Segmented<Way>
              label={t("workers.way")}
              value={way}
              onChange={setWay}
              options={[
                { value: "key", label: t("workers.way_key") },
                { value: "one", label: t("workers.way_one") },
              ]}
            />
            <p className="mt-2 text-sm text-muted">{t(way === "key" ? "workers.key_text" : "workers.one_text")}</p>
          </div>
          {way === "key" ? (
            <KeyForm onMade={(created) => setMade({ kind: "key", created, known: new Set(workers.map(({ id }) => id)) })} />
          ) : (
            <RegisterForm onMade={(created) => setMade({ kind: "one", created })} />
          )}
        </>
      )}
      {made?.kind === "key" && (
        <KeyCommands created={made.created} arrived={workers.filter(({ id, status }) => !made.known.has(id) && status !== "offline")} onClose={close} />
      )}
      {made?.kind === "one" && (
        <OwnKeyCommands created={made.created} arrived={workers.filter(({ id, status }) => id === made.created.worker.id && status !== "offline")} onClose={close} />
      )}
    </Dialog>
  )
}
