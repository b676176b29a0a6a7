import { Link } from "react-router"
import type { DatasetOut, ModelOut, TrainerOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Field, Input, Select } from "~/parts/Field"
import { isTrainable } from "../datasets/shape"

export interface Choices {
  name: string
  datasetId: string
  modelId: string
  validationId: string
  trainer: string
}

interface Props {
  choices: Choices
  onChange: (choices: Choices) => void
  datasets: DatasetOut[]
  models: ModelOut[]
  trainers: TrainerOut[]
  problem: (field: string) => string | undefined
}

/** What matters first: which data, which model, and what it shall be called. */
export function MainChoices({ choices, onChange, datasets, models, trainers, problem }: Props) {
  const { t } = useWords()
  const set = (field: keyof Choices) => (event: { target: { value: string } }) => onChange({ ...choices, [field]: event.target.value })
  const trainer = trainers.find(({ name }) => name === choices.trainer)
  const fitting = datasets.filter((dataset) => isTrainable(dataset) && (!trainer || trainer.accepts.includes(dataset.schema_kind ?? "")))
  const ready = models.filter(({ state, id }) => state === "ready" || String(id) === choices.modelId)
  const dataset = datasets.find(({ id }) => String(id) === choices.datasetId)
  const model = models.find(({ id }) => String(id) === choices.modelId)
  const suggested = suggestName(dataset, model)
  return (
    <section className="card grid gap-4 p-4 sm:grid-cols-2">
      <Field label={t("training.dataset")} error={problem("dataset_id")} hint={fitting.length === 0 && <Missing to="/datasets?add=1" text={t("training.no_dataset")} action={t("datasets.add")} />}>
        {(control) => (
          <Select {...control} required value={choices.datasetId} onChange={set("datasetId")}>
            <option value="">{t("common.choose")}</option>
            {withChosen(fitting, dataset).map((one) => (
              <option key={one.id} value={one.id}>
                {one.row_count === null ? one.name : t("training.dataset_option", { name: one.name, count: one.row_count })}
              </option>
            ))}
          </Select>
        )}
      </Field>
      <Field label={t("training.model")} error={problem("model_id")} hint={ready.length === 0 && <Missing to="/models?add=1" text={t("training.no_model")} action={t("models.add")} />}>
        {(control) => (
          <Select {...control} required value={choices.modelId} onChange={set("modelId")}>
            <option value="">{t("common.choose")}</option>
            {ready.map((one) => (
              <option key={one.id} value={one.id}>
                {one.name}
              </option>
            ))}
          </Select>
        )}
      </Field>
      <Field label={t("common.name")} error={problem("name")}>
        {(control) => <Input {...control} maxLength={200} placeholder={suggested && t("form.default_was", { value: suggested })} value={choices.name} onChange={set("name")} />}
      </Field>
      <Field label={t("training.validation")} error={problem("validation_dataset_id")}>
        {(control) => (
          <Select {...control} value={choices.validationId} onChange={set("validationId")}>
            <option value="">{t("training.validation_split")}</option>
            {fitting
              .filter(({ id }) => String(id) !== choices.datasetId)
              .map((one) => (
                <option key={one.id} value={one.id}>
                  {one.name}
                </option>
              ))}
          </Select>
        )}
      </Field>
      {trainers.length > 1 && (
        <Field label={t("training.trainer")} error={problem("trainer")}>
          {(control) => (
            <Select {...control} value={choices.trainer} onChange={set("trainer")}>
              {trainers.map(({ name, title }) => (
                <option key={name} value={name}>
                  {title}
                </option>
              ))}
            </Select>
          )}
        </Field>
      )}
    </section>
  )
}

function Missing({ to, text, action }: { to: string; text: string; action: string }) {
  return (
    <>
      {text}{" "}
      <Link to={to} className="text-accent underline">
        {action}
      </Link>
    </>
  )
}

function withChosen(list: DatasetOut[], chosen: DatasetOut | undefined): DatasetOut[] {
  return chosen && !list.includes(chosen) ? [chosen, ...list] : list
}

export function suggestName(dataset: DatasetOut | undefined, model: ModelOut | undefined): string {
  return dataset && model ? `${model.name} · ${dataset.name}`.slice(0, 200) : ""
}
