import { useMutation } from "@tanstack/react-query"
import { useState, type FormEvent } from "react"
import { ApiProblem, patch, post } from "~/api/http"
import { client } from "~/api/queries"
import type { PresetOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { Dialog } from "~/parts/Dialog"
import { ErrorNote } from "~/parts/ErrorNote"
import { Field, Input } from "~/parts/Field"

interface Props {
  /** The preset whose name and description are changed; none: a new one is made. */
  existing: PresetOut | undefined
  trainer: string
  config: Record<string, unknown>
  onClose: () => void
  onSaved: (preset: PresetOut) => void
}

export function SavePresetDialog({ existing, trainer, config, onClose, onSaved }: Props) {
  const { t } = useWords()
  const [name, setName] = useState(existing?.name ?? "")
  const [description, setDescription] = useState(existing?.description ?? "")
  const save = useMutation({
    mutationFn: async () => {
      const words = { name: name.trim(), description: description.trim() || null }
      const saved = existing
        ? await patch<PresetOut>(`/presets/${existing.id ?? 0}`, words)
        : await post<PresetOut>("/presets", { ...words, trainer, config })
      // The list first: the form takes the new one's parameters from there.
      await client.invalidateQueries({ queryKey: ["presets"] })
      return saved
    },
    onSuccess: onSaved,
  })
  const error = save.error instanceof ApiProblem ? save.error : null
  const submit = (event: FormEvent) => {
    event.preventDefault()
    // The dialog's form lies within the page's own in React's tree.
    event.stopPropagation()
    save.mutate()
  }
  return (
    <Dialog
      open
      onClose={onClose}
      title={existing ? t("preset.edit") : t("preset.save")}
      description={existing ? undefined : t("preset.save_text")}
      footer={
        <>
          <Button onClick={onClose}>{t("common.cancel")}</Button>
          <Button look="main" type="submit" form="preset-form" busy={save.isPending} disabled={!name.trim()}>
            {t("common.save")}
          </Button>
        </>
      }
    >
      <form id="preset-form" onSubmit={submit} className="space-y-4">
        <Field label={t("common.name")} error={error?.at("name")}>
          {(control) => <Input {...control} required maxLength={200} value={name} onChange={(event) => setName(event.target.value)} />}
        </Field>
        <Field label={t("preset.description")} hint={t("preset.description_hint")} error={error?.at("description")}>
          {(control) => <Input {...control} maxLength={500} value={description} onChange={(event) => setDescription(event.target.value)} />}
        </Field>
        {!error?.at("name") && <ErrorNote error={save.error} />}
      </form>
    </Dialog>
  )
}
