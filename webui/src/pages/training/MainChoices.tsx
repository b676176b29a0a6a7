import type { ReactNode } from "react"
import { Link } from "react-router"
import type { DatasetOut, ModelOut, TrainerOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Field, Input, Select } from "~/parts/Field"
import { isTrainable } from "../datasets/shape"
import { suggestName, type Choices } from "./draft"
import type { ProblemAt } from "./problems"

interface Props {
  choices: Choices
  onChange: (choices: Choices) => void
  datasets: DatasetOut[]
  models: ModelOut[]
  trainers: TrainerOut[]
  problem: ProblemAt
}

/** What matters first: which data, and which model. */
export function MainChoices({ choices, onChange, datasets, models, trainers, problem }: Props) {
  const { t, phrase } = useWords()
  const set = (field: keyof Choices) => (event: { target: { value: string } }) => onChange({ ...choices, [field]: event.target.value })
  const fitting = fittingData(datasets, trainers, choices)
  const ready = models.filter(({ state, id }) => state === "ready" || String(id) === choices.modelId)
  const dataset = datasets.find(({ id }) => String(id) === choices.datasetId)
  const say = (text: string | undefined) => text && phrase(text)
  return (
    <div className="grid gap-4 sm:grid-cols-2">
      <Field label={t("training.dataset")} error={say(problem("dataset_id"))} hint={fitting.length === 0 && <Missing to="/datasets?add=1" text={t("training.no_dataset")} action={t("datasets.add")} />}>
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
      <Field label={t("training.model")} error={say(problem("model_id"))} hint={ready.length === 0 && <Missing to="/models?add=1" text={t("training.no_model")} action={t("models.add")} />}>
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
    </div>
  )
}

/** What comes after: its name, other data to validate on, and the kind of training where there are several. */
export function OtherChoices({ choices, onChange, datasets, models, trainers, problem, children }: Props & { children: ReactNode }) {
  const { t, phrase } = useWords()
  const set = (field: keyof Choices) => (event: { target: { value: string } }) => onChange({ ...choices, [field]: event.target.value })
  const dataset = datasets.find(({ id }) => String(id) === choices.datasetId)
  const model = models.find(({ id }) => String(id) === choices.modelId)
  const suggested = suggestName(dataset, model)
  const say = (text: string | undefined) => text && phrase(text)
  return (
    <section className="card grid gap-4 p-4 sm:grid-cols-2">
      <Field label={t("common.name")} error={say(problem("name"))}>
        {(control) => <Input {...control} maxLength={200} placeholder={suggested && t("form.default_was", { value: suggested })} value={choices.name} onChange={set("name")} />}
      </Field>
      <Field label={t("training.validation")} error={say(problem("validation_dataset_id"))}>
        {(control) => (
          <Select {...control} value={choices.validationId} onChange={set("validationId")}>
            <option value="">{t("training.validation_split")}</option>
            {fittingData(datasets, trainers, choices)
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
        <Field label={t("training.trainer")} error={say(problem("trainer"))}>
          {(control) => (
            <Select {...control} value={choices.trainer} onChange={(event) => onChange({ ...choices, trainer: event.target.value, preset: "" })}>
              {trainers.map(({ name, title }) => (
                <option key={name} value={name}>
                  {title}
                </option>
              ))}
            </Select>
          )}
        </Field>
      )}
      {children}
    </section>
  )
}

function fittingData(datasets: DatasetOut[], trainers: TrainerOut[], choices: Choices): DatasetOut[] {
  const trainer = trainers.find(({ name }) => name === choices.trainer)
  return datasets.filter((dataset) => isTrainable(dataset) && (!trainer || trainer.accepts.includes(dataset.schema_kind ?? "")))
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
