import type { Catalogue } from "../message"

/** The form of a new training: presets, where it may run, what it will come to. */
export const form = {
  "preset.title": "Preset",
  "preset.own": "Your own settings",
  "preset.save": "Save as preset",
  "preset.save_text": "Keeps the settings as they stand now, without data and model, to start from again.",
  "preset.update": "Save the changes to “{name}”",
  "preset.edit": "Name and description",
  "preset.description": "Description",
  "preset.description_hint": "When one would take it.",

  "form.view": "View of the settings",
  "form.view_form": "Form",
  "form.extras": "Only in YAML:",

  "yaml.label": "The training as YAML",
  "yaml.hint": "The same words as in the API. What you leave out takes the preset's value, else the default.",
  "yaml.syntax": "Line {line}: this is not valid YAML.",
  "yaml.no_mapping": "Write it as names and values, for example “preset: quick”.",

  "where.title": "Where it may run",
  "where.any": "Best machine",
  "where.any_hint": "The hub takes the best machine that is free and fits.",
  "where.machines": "Chosen machines",
  "where.gpu": "Kind of GPU",
  "where.processor": "Processor only",
  "where.choose_one": "Choose at least one, or any machine is taken.",
  "where.no_machine": "There is no machine yet.",
  "where.no_gpu": "No machine with a GPU is known yet.",

  "plan.title": "This run",
  "plan.choose": "Choose data and a base model to see what it comes to.",
  "plan.rows": "Rows to learn from",
  "plan.held_back": "Held back",
  "plan.steps": "Steps, about",
  "plan.tokens": "Tokens, all epochs",
  "plan.batch": "Effective batch",
  "plan.length": "Longest sequence",
  "plan.length_tokens": { one: "{count} token", other: "{count} tokens" },
  "plan.trained": "Trained parameters",
  "plan.memory": "GPU memory",
  "plan.from": "from about",
  "plan.workers": "Workers",
  "plan.online": { zero: "none online", one: "{count} online", other: "{count} online" },

  "check.few_rows": "{name} has {rows} usable rows; a model learns little from so few.",
  "check.rows_cut": "The longest row has {longest} tokens and will be cut to {limit}.",
  "check.no_worker": "No worker is online: the job will wait in the queue.",
  "check.none_selected": "None of the workers that fit your choice is online: the job will wait for one.",
  "check.no_gpu": "Only processors are online for it: without a GPU it takes long.",
  "check.little_memory": "It needs about {needed} GiB of GPU memory; the largest GPU that is online has {largest} GiB.",
} as const satisfies Catalogue
