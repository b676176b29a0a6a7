import type { ModelOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Select } from "~/parts/Field"

interface Props {
  models: ModelOut[]
  value: string
  onChange: (id: string) => void
  label?: string
}

/** Every model that can answer, fine-tuned ones first. */
export function ModelPicker({ models, value, onChange, label }: Props) {
  const { t } = useWords()
  const tuned = models.filter(({ training_job_id }) => training_job_id !== null)
  const base = models.filter(({ training_job_id }) => training_job_id === null)
  return (
    <Select className="!w-auto max-w-[60vw] min-w-0 truncate" aria-label={label ?? t("chat.model")} value={value} onChange={(event) => onChange(event.target.value)}>
      {value === "" && <option value="">{t("chat.no_model")}</option>}
      <Group label={t("chat.tuned")} models={tuned} />
      <Group label={t("chat.base")} models={base} />
    </Select>
  )
}

function Group({ label, models }: { label: string; models: ModelOut[] }) {
  if (models.length === 0) return null
  return (
    <optgroup label={label}>
      {models.map((model) => (
        <option key={model.id} value={model.id}>
          {model.name}
        </option>
      ))}
    </optgroup>
  )
}
