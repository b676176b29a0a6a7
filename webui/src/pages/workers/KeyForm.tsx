import { useMutation } from "@tanstack/react-query"
import { useState, type FormEvent } from "react"
import { post, problemAt } from "~/api/http"
import { useRefresh } from "~/api/queries"
import type { MasterKeyCreated, WorkerType } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { ErrorNote } from "~/parts/ErrorNote"
import { Field, Input, Select } from "~/parts/Field"
import { TypeOptions } from "./TypeOptions"

const DAY = 86_400_000
const DAYS = [1, 7, 30, 0]
const PLACED = new Set(["name", "auto_name_prefix", "default_worker_type", "max_enrollments", "expires_at"])

/** Makes a key with which machines enrol. */
export function KeyForm({ onMade }: { onMade: (key: MasterKeyCreated) => void }) {
  const { t } = useWords()
  const refresh = useRefresh()
  const [name, setName] = useState("")
  const [most, setMost] = useState("")
  const [days, setDays] = useState(7)
  const [prefix, setPrefix] = useState("")
  const [type, setType] = useState<WorkerType>("both")
  const create = useMutation({
    mutationFn: () =>
      post<MasterKeyCreated>("/master-keys", {
        name: name.trim() || t("workers.key_default_name"),
        auto_name_prefix: prefix.trim() || null,
        default_worker_type: type,
        max_enrollments: most ? Number(most) : null,
        expires_at: days ? new Date(Date.now() + days * DAY).toISOString() : null,
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
  const problem = (field: string) => problemAt(create.error, field)
  return (
    <form onSubmit={submit} className="space-y-4">
      <Field label={t("workers.key_name")} error={problem("name")}>
        {(control) => (
          <Input {...control} autoFocus maxLength={200} placeholder={t("workers.key_default_name")} value={name} onChange={(event) => setName(event.target.value)} />
        )}
      </Field>
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label={t("workers.most")} hint={t("workers.most_hint")} error={problem("max_enrollments")}>
          {(control) => <Input {...control} type="number" min={1} value={most} onChange={(event) => setMost(event.target.value)} />}
        </Field>
        <Field label={t("workers.expires")} error={problem("expires_at")}>
          {(control) => (
            <Select {...control} value={days} onChange={(event) => setDays(Number(event.target.value))}>
              {DAYS.map((count) => (
                <option key={count} value={count}>
                  {count === 0 ? t("workers.never_expires") : t("workers.expires_in", { count })}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <Field label={t("workers.prefix")} hint={t("workers.prefix_hint", { prefix: prefix || "gpu" })} error={problem("auto_name_prefix")}>
          {(control) => <Input {...control} maxLength={60} placeholder="gpu" value={prefix} onChange={(event) => setPrefix(event.target.value)} />}
        </Field>
        <Field label={t("workers.type")} error={problem("default_worker_type")}>
          {(control) => (
            <Select {...control} value={type} onChange={(event) => setType(event.target.value as WorkerType)}>
              <TypeOptions />
            </Select>
          )}
        </Field>
      </div>
      <ErrorNote error={create.error} except={(loc) => PLACED.has(loc)} />
      <div className="flex justify-end">
        <Button look="main" type="submit" busy={create.isPending}>
          {t("workers.make_key")}
        </Button>
      </div>
    </form>
  )
}
