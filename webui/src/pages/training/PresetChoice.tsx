import { Pencil, Save, Trash2 } from "lucide-react"
import { useState } from "react"
import { patch, post, remove } from "~/api/http"
import { client, useRefresh } from "~/api/queries"
import type { PresetOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { useFieldWords } from "~/i18n/fields"
import { Button } from "~/parts/Button"
import { ErrorNote } from "~/parts/ErrorNote"
import { Menu } from "~/parts/Menu"
import { notify } from "~/state/notices"
import { SavePresetDialog } from "./SavePresetDialog"

interface Props {
  presets: PresetOut[]
  trainer: string
  value: string
  onChange: (name: string) => void
  /** The settings as they stand are this preset's now. */
  onSaved: (name: string) => void
  /** The settings as they stand now, the preset's and one's own together. */
  config: Record<string, unknown>
  /** True where one has changed something since. */
  isChanged: boolean
  problem: string | undefined
}

/** Where to start from: what comes with the trainer, then one's own. */
export function PresetChoice({ presets, trainer, value, onChange, onSaved, config, isChanged, problem }: Props) {
  const { t, phrase } = useWords()
  const words = useFieldWords()
  const refresh = useRefresh()
  const [dialog, setDialog] = useState<"new" | "edit" | null>(null)
  const [error, setError] = useState<unknown>(null)
  const chosen = presets.find(({ name }) => name === value)
  const own = chosen && !chosen.builtin ? chosen : undefined
  const change = async (step: () => Promise<unknown>) => {
    setError(null)
    try {
      await step()
    } catch (problem) {
      setError(problem)
    }
  }
  const update = async ({ id, name }: PresetOut) => {
    await patch(`/presets/${id ?? 0}`, { config })
    await client.invalidateQueries({ queryKey: ["presets"] })
    onSaved(name)
  }
  const discard = async ({ id, name, description, trainer, config }: PresetOut) => {
    await remove(`/presets/${id ?? 0}`)
    onChange("")
    refresh("presets")
    notify({
      text: t("preset.deleted", { name }),
      undo: async () => {
        await post("/presets", { name, description, trainer, config })
        refresh("presets")
      },
    })
  }
  return (
    <fieldset className="min-w-0">
      <div className="mb-2 flex min-h-9 flex-wrap items-center justify-between gap-x-2">
        <legend className="float-left font-semibold">{t("preset.title")}</legend>
        <span className="flex items-center gap-1">
          <Button look="quiet" disabled={!isChanged} onClick={() => setDialog("new")}>
            <Save size={15} aria-hidden /> {t("preset.save")}
          </Button>
          <Menu
            items={
              own
                ? [
                    { label: t("preset.update", { name: own.name }), icon: <Save size={15} aria-hidden />, disabled: !isChanged, onSelect: () => void change(() => update(own)) },
                    { label: t("preset.edit"), icon: <Pencil size={15} aria-hidden />, onSelect: () => setDialog("edit") },
                    {
                      label: t("common.delete"),
                      icon: <Trash2 size={15} aria-hidden />,
                      danger: true,
                      onSelect: () => void change(() => discard(own)),
                    },
                  ]
                : []
            }
          />
        </span>
      </div>
      <div role="radiogroup" aria-label={t("preset.title")} className="grid gap-2 sm:grid-cols-2">
        {presets.map((preset, index) => {
          const isChosen = preset.name === value || (value === "" && index === 0)
          const id = `preset-${preset.id ?? preset.name}`
          return (
            <label
              key={id}
              className="flex cursor-pointer items-start gap-2.5 rounded-lg border border-line-strong px-3 py-2.5 hover:bg-hover has-checked:border-accent has-checked:bg-accent-soft has-focus-visible:outline-2 has-focus-visible:outline-offset-2 has-focus-visible:outline-accent"
            >
              <input type="radio" name="preset" className="mt-1 accent-(--c-accent)" aria-labelledby={`${id}-title`} aria-describedby={`${id}-text`} checked={isChosen} onChange={() => onChange(preset.name)} />
              <span className="min-w-0">
                <span id={`${id}-title`} className="block font-medium break-words">{preset.builtin ? words.presetTitle(preset.title) : preset.title}</span>
                <span id={`${id}-text`} className="block text-sm text-muted">{preset.builtin ? words.presetText(preset.description ?? "") : (preset.description ?? t("preset.own"))}</span>
              </span>
            </label>
          )
        })}
      </div>
      {problem && <p className="mt-1 text-sm text-bad" role="alert">{phrase(problem)}</p>}
      <ErrorNote error={error} />
      {dialog !== null && (
        <SavePresetDialog
          existing={dialog === "edit" ? own : undefined}
          trainer={trainer}
          config={config}
          onClose={() => setDialog(null)}
          onSaved={(preset) => {
            setDialog(null)
            if (dialog === "new") onSaved(preset.name)
            else onChange(preset.name)
          }}
        />
      )}
    </fieldset>
  )
}
