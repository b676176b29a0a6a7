import { useMutation } from "@tanstack/react-query"
import { CircleCheck, LoaderCircle } from "lucide-react"
import { useState, type FormEvent } from "react"
import { ApiProblem, post } from "~/api/http"
import { useRefresh } from "~/api/queries"
import type { MasterKeyCreated, WorkerOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { CopyBox } from "~/parts/Copy"
import { Dialog } from "~/parts/Dialog"
import { ErrorNote } from "~/parts/ErrorNote"
import { Field, Input, Select } from "~/parts/Field"

interface Props {
  open: boolean
  onClose: () => void
  workers: WorkerOut[]
}

/** One key for as many machines as wanted; the dialog stays until one has appeared or is closed. */
export function AddWorkerDialog({ open, onClose, workers }: Props) {
  const { t } = useWords()
  const [made, setMade] = useState<{ key: MasterKeyCreated; known: number[] } | null>(null)
  const close = () => {
    setMade(null)
    onClose()
  }
  return (
    <Dialog open={open} onClose={close} wide={made !== null} sticky={made !== null} title={t("workers.add")} description={t(made ? "workers.commands_text" : "workers.key_text")}>
      {made ? (
        <Commands created={made.key} arrived={workers.filter(({ id }) => !made.known.includes(id))} onClose={close} />
      ) : (
        <KeyForm onMade={(key) => setMade({ key, known: workers.map(({ id }) => id) })} />
      )}
    </Dialog>
  )
}

function KeyForm({ onMade }: { onMade: (key: MasterKeyCreated) => void }) {
  const { t } = useWords()
  const refresh = useRefresh()
  const [name, setName] = useState("")
  const [prefix, setPrefix] = useState("")
  const [type, setType] = useState("both")
  const [most, setMost] = useState("")
  const create = useMutation({
    mutationFn: () =>
      post<MasterKeyCreated>("/master-keys", {
        name: name.trim() || t("workers.key_default_name"),
        auto_name_prefix: prefix.trim() || null,
        default_worker_type: type,
        max_enrollments: most ? Number(most) : null,
      }),
    onSuccess: (key) => {
      refresh("master-keys")
      onMade(key)
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    create.mutate()
  }
  const problem = (field: string) => (create.error instanceof ApiProblem ? create.error.at(field) : undefined)
  return (
    <form onSubmit={submit} className="space-y-4">
      <Field label={t("workers.key_name")} error={problem("name")}>
        {(control) => (
          <Input {...control} autoFocus maxLength={200} placeholder={t("workers.key_default_name")} value={name} onChange={(event) => setName(event.target.value)} />
        )}
      </Field>
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label={t("workers.prefix")} hint={t("workers.prefix_hint", { prefix: prefix || "gpu" })} error={problem("auto_name_prefix")}>
          {(control) => <Input {...control} maxLength={60} placeholder="gpu" value={prefix} onChange={(event) => setPrefix(event.target.value)} />}
        </Field>
        <Field label={t("workers.type")} error={problem("default_worker_type")}>
          {(control) => (
            <Select {...control} value={type} onChange={(event) => setType(event.target.value)}>
              <option value="both">{t("worker_type.both")}</option>
              <option value="fine_tuner">{t("worker_type.fine_tuner")}</option>
              <option value="prompter">{t("worker_type.prompter")}</option>
            </Select>
          )}
        </Field>
        <Field label={t("workers.most")} hint={t("workers.most_hint")} error={problem("max_enrollments")}>
          {(control) => <Input {...control} type="number" min={1} value={most} onChange={(event) => setMost(event.target.value)} />}
        </Field>
      </div>
      <ErrorNote error={create.error} except={(loc) => ["name", "auto_name_prefix", "default_worker_type", "max_enrollments"].includes(loc)} />
      <div className="flex justify-end">
        <Button look="main" type="submit" busy={create.isPending}>
          {t("workers.make_key")}
        </Button>
      </div>
    </form>
  )
}

function Commands({ created, arrived, onClose }: { created: MasterKeyCreated; arrived: WorkerOut[]; onClose: () => void }) {
  const { t, format } = useWords()
  const isHere = arrived.length > 0
  return (
    <div className="space-y-4">
      <Step number={1} title={t("workers.step_init")}>
        <CopyBox text={`parsyn init --url ${location.origin}`} />
      </Step>
      <Step number={2} title={t("workers.step_key")}>
        <CopyBox text={created.key} />
        <p className="mt-1 text-sm text-warn">{t("workers.key_once")}</p>
      </Step>
      <Step number={3} title={t("workers.step_start")}>
        <CopyBox text="parsyn start" />
      </Step>
      <div role="status" className={`flex items-center gap-2 rounded-lg px-3 py-2.5 text-sm ${isHere ? "bg-good-soft text-good" : "bg-sunken text-muted"}`}>
        {isHere ? <CircleCheck size={18} aria-hidden /> : <LoaderCircle size={18} aria-hidden className="animate-spin" />}
        {isHere ? t("workers.arrived", { names: format.list(arrived.map(({ name }) => name)) }) : t("workers.waiting")}
      </div>
      <div className="flex justify-end">
        <Button look={isHere ? "main" : "plain"} onClick={onClose}>
          {t(isHere ? "common.done" : "common.close")}
        </Button>
      </div>
    </div>
  )
}

function Step({ number, title, children }: { number: number; title: string; children: React.ReactNode }) {
  return (
    <div className="flex gap-3">
      <span className="num mt-0.5 inline-flex size-6 shrink-0 items-center justify-center rounded-full bg-accent-soft text-sm font-medium text-accent">
        {number}
      </span>
      <div className="min-w-0 flex-1">
        <p className="mb-1.5 text-sm font-medium">{title}</p>
        {children}
      </div>
    </div>
  )
}
