import { useMutation } from "@tanstack/react-query"
import { useState, type FormEvent } from "react"
import { post, problemAt } from "~/api/http"
import { storeFresh } from "~/api/queries"
import type { WorkerCreated, WorkerType } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { ErrorNote } from "~/parts/ErrorNote"
import { Field, Input, Select } from "~/parts/Field"
import { TypeOptions } from "./TypeOptions"

/** Registers one machine under a name that is chosen here; it gets a key of its own. */
export function RegisterForm({ onMade }: { onMade: (made: WorkerCreated) => void }) {
  const { t } = useWords()
  const [name, setName] = useState("")
  const [type, setType] = useState<WorkerType>("both")
  const create = useMutation({
    mutationFn: () => post<WorkerCreated>("/workers", { name: name.trim(), worker_type: type }),
    onSuccess: (made) => {
      storeFresh("workers", made.worker)
      onMade(made)
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    create.mutate()
  }
  const problem = (field: string) => problemAt(create.error, field)
  return (
    <form onSubmit={submit} className="space-y-4">
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label={t("common.name")} error={problem("name")}>
          {(control) => <Input {...control} autoFocus required maxLength={200} value={name} onChange={(event) => setName(event.target.value)} />}
        </Field>
        <Field label={t("workers.type")} error={problem("worker_type")}>
          {(control) => (
            <Select {...control} value={type} onChange={(event) => setType(event.target.value as WorkerType)}>
              <TypeOptions />
            </Select>
          )}
        </Field>
      </div>
      <ErrorNote error={create.error} except={(loc) => loc === "name" || loc === "worker_type"} />
      <div className="flex justify-end">
        <Button look="main" type="submit" busy={create.isPending}>
          {t("workers.register")}
        </Button>
      </div>
    </form>
  )
}
