import { useMutation } from "@tanstack/react-query"
import { useState, type FormEvent } from "react"
import { useNavigate } from "react-router"
import { post, problemAt } from "~/api/http"
import { storeFresh } from "~/api/queries"
import type { ModelOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { CopyBox } from "~/parts/Copy"
import { Dialog } from "~/parts/Dialog"
import { ErrorNote } from "~/parts/ErrorNote"
import { Field, Input, Segmented } from "~/parts/Field"
import { UploadModelForm } from "./UploadModelForm"

const FIELDS = ["name", "hub_id", "revision"]

export function AddModelDialog({ open, onClose }: { open: boolean; onClose: () => void }) {
  const { t } = useWords()
  const [way, setWay] = useState<"hub" | "files">("hub")
  return (
    <Dialog open={open} onClose={onClose} title={t("models.add")} description={t(way === "hub" ? "models.add_text" : "models.upload_text")} sticky={way === "files"}>
      <div className="mb-4">
        <Segmented
          label={t("models.from")}
          value={way}
          onChange={setWay}
          options={[
            { value: "hub", label: t("models.from_hub") },
            { value: "files", label: t("models.from_files") },
          ]}
        />
      </div>
      {way === "hub" ? <HubForm onClose={onClose} /> : <UploadModelForm onClose={onClose} />}
    </Dialog>
  )
}

function HubForm({ onClose }: { onClose: () => void }) {
  const { t } = useWords()
  const navigate = useNavigate()
  const [hubId, setHubId] = useState("")
  const [name, setName] = useState("")
  const [revision, setRevision] = useState("")
  const suggested = hubId.split("/").pop() ?? ""
  const add = useMutation({
    mutationFn: () =>
      post<ModelOut>("/models", { name: name.trim() || suggested, source: "hub", hub_id: hubId.trim(), revision: revision.trim() || null }),
    onSuccess: (model) => {
      storeFresh("models", model)
      void navigate(`/models/${model.id}`)
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    add.mutate()
  }
  const problem = (field: string) => problemAt(add.error, field)
  return (
    <form onSubmit={submit} className="space-y-4">
      <Field label={t("models.hub_id")} hint={t("models.hub_id_hint")} error={problem("hub_id")}>
        {(control) => (
          <Input
            {...control}
            autoFocus
            required
            spellCheck={false}
            placeholder="HuggingFaceTB/SmolLM2-135M-Instruct"
            value={hubId}
            onChange={(event) => setHubId(event.target.value)}
          />
        )}
      </Field>
      <Field label={t("common.name")} error={problem("name")}>
        {(control) => <Input {...control} maxLength={200} placeholder={suggested && t("form.default_was", { value: suggested })} value={name} onChange={(event) => setName(event.target.value)} />}
      </Field>
      <Field label={t("models.revision")} hint={t("models.revision_hint")} error={problem("revision")}>
        {(control) => (
          <Input {...control} spellCheck={false} placeholder={t("form.default_was", { value: "main" })} value={revision} onChange={(event) => setRevision(event.target.value)} />
        )}
      </Field>
      <div>
        <p className="mb-1 text-sm text-muted">{t("models.local_hint")}</p>
        <CopyBox text={t("models.local_command")} />
      </div>
      <ErrorNote error={add.error} except={(loc) => FIELDS.includes(loc)} />
      <div className="flex justify-end gap-2">
        <Button onClick={onClose}>{t("common.cancel")}</Button>
        <Button look="main" type="submit" busy={add.isPending}>
          {t("models.fetch")}
        </Button>
      </div>
    </form>
  )
}
