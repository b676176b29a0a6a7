import { useMutation } from "@tanstack/react-query"
import { useState, type FormEvent } from "react"
import { post, problemAt } from "~/api/http"
import { useRefresh } from "~/api/queries"
import { useMe } from "~/api/session"
import type { ApiKeyCreated, Scope } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { CopyBox } from "~/parts/Copy"
import { Dialog } from "~/parts/Dialog"
import { ErrorNote } from "~/parts/ErrorNote"
import { Field, Input, Select } from "~/parts/Field"

const SCOPES: Scope[] = ["read", "write", "inference", "workers", "admin"]
const DAYS = [0, 30, 90, 365]

export function NewKeyDialog({ open, onClose }: { open: boolean; onClose: () => void }) {
  const { t } = useWords()
  const [key, setKey] = useState<string | null>(null)
  const close = () => {
    setKey(null)
    onClose()
  }
  return (
    <Dialog open={open} onClose={close} sticky={key !== null} title={t("keys.add")}>
      {key === null ? (
        <KeyForm onMade={setKey} />
      ) : (
        <div className="space-y-4">
          <p className="text-sm text-warn">{t("keys.once")}</p>
          <CopyBox text={key} />
          <div className="flex justify-end">
            <Button look="main" onClick={close}>
              {t("common.done")}
            </Button>
          </div>
        </div>
      )}
    </Dialog>
  )
}

function KeyForm({ onMade }: { onMade: (key: string) => void }) {
  const { t } = useWords()
  const refresh = useRefresh()
  const role = useMe().data?.role
  const [name, setName] = useState("")
  const [scopes, setScopes] = useState<Scope[]>(["read", "inference"])
  const [days, setDays] = useState(90)
  const offered = SCOPES.filter((scope) => scope !== "admin" || role === "admin" || role === "owner")
  const create = useMutation({
    mutationFn: () =>
      post<ApiKeyCreated>("/api-keys", { name: name.trim(), scopes, expires_at: days ? new Date(Date.now() + days * 86_400_000).toISOString() : null }),
    onSuccess: ({ key }) => {
      refresh("api-keys")
      onMade(key)
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    create.mutate()
  }
  const toggle = (scope: Scope) => setScopes(scopes.includes(scope) ? scopes.filter((one) => one !== scope) : [...scopes, scope])
  const problem = (field: string) => problemAt(create.error, field)
  return (
    <form onSubmit={submit} className="space-y-4">
      <Field label={t("common.name")} error={problem("name")}>
        {(control) => <Input {...control} autoFocus required maxLength={200} placeholder={t("keys.name_example")} value={name} onChange={(event) => setName(event.target.value)} />}
      </Field>
      <fieldset>
        <legend className="mb-1 text-sm font-medium">{t("keys.scopes")}</legend>
        {offered.map((scope) => (
          <label key={scope} className="flex min-h-9 items-center gap-2 text-sm">
            <input type="checkbox" checked={scopes.includes(scope)} onChange={() => toggle(scope)} className="size-4 accent-[var(--c-accent)]" />
            <span>
              {t(`scope.${scope}`)} <span className="text-muted">{t(`scope.${scope}_text`)}</span>
            </span>
          </label>
        ))}
        {problem("scopes") && <p className="text-sm text-bad">{problem("scopes")}</p>}
      </fieldset>
      <Field label={t("keys.valid_for")}>
        {(control) => (
          <Select {...control} value={days} onChange={(event) => setDays(Number(event.target.value))}>
            {DAYS.map((count) => (
              <option key={count} value={count}>
                {count === 0 ? t("keys.no_expiry") : t("keys.days", { count })}
              </option>
            ))}
          </Select>
        )}
      </Field>
      <ErrorNote error={create.error} except={(loc) => loc === "name" || loc === "scopes"} />
      <div className="flex justify-end">
        <Button look="main" type="submit" busy={create.isPending} disabled={scopes.length === 0}>
          {t("keys.create")}
        </Button>
      </div>
    </form>
  )
}
