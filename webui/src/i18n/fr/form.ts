import type { form as english } from "../en/form"
import type { Translation } from "../message"

export const form: Translation<typeof english> = {
  "preset.title": "Préréglage",
  "preset.own": "Vos propres réglages",
  "preset.save": "Enregistrer comme préréglage",
  "preset.save_text": "Garde les réglages actuels, sans les données ni le modèle, pour en repartir plus tard.",
  "preset.update": "Enregistrer les changements dans «\u00a0{name}\u00a0»",
  "preset.edit": "Nom et description",
  "preset.description": "Description",
  "preset.description_hint": "Dans quel cas le choisir.",

  "form.view": "Affichage des réglages",
  "form.view_form": "Formulaire",
  "form.extras": "Seulement en YAML\u00a0:",

  "yaml.label": "L'entraînement en YAML",
  "yaml.hint": "Les mêmes mots que dans l'API. Ce qui n'est pas dit prend la valeur du préréglage, sinon celle par défaut.",
  "yaml.syntax": "Ligne {line}\u00a0: ce n'est pas du YAML valide.",
  "yaml.no_mapping": "Écrivez des noms et des valeurs, par exemple «\u00a0preset: quick\u00a0».",

  "where.title": "Où il peut tourner",
  "where.any": "Meilleure machine",
  "where.any_hint": "Le hub prend la meilleure machine libre qui convient.",
  "where.machines": "Machines choisies",
  "where.gpu": "Type de GPU",
  "where.processor": "Processeur seul",
  "where.choose_one": "Choisissez-en au moins une, sinon toute machine convient.",
  "where.no_machine": "Il n'y a pas encore de machine.",
  "where.no_gpu": "Aucune machine avec GPU n'est encore connue.",

  "plan.title": "Cet entraînement",
  "plan.choose": "Choisissez des données et un modèle de base pour voir ce que cela donne.",
  "plan.rows": "Lignes apprises",
  "plan.held_back": "Mises de côté",
  "plan.steps": "Étapes, environ",
  "plan.tokens": "Jetons, toutes époques",
  "plan.batch": "Lot effectif",
  "plan.length": "Séquence la plus longue",
  "plan.length_tokens": { one: "{count} jeton", other: "{count} jetons", many: "{count} jetons" },
  "plan.trained": "Paramètres entraînés",
  "plan.memory": "Mémoire GPU",
  "plan.from": "à partir d'environ",
  "plan.workers": "Machines",
  "plan.online": { zero: "aucune en ligne", one: "{count} en ligne", other: "{count} en ligne", many: "{count} en ligne" },

  "check.few_rows": "{name} a {rows} lignes utilisables\u00a0; un modèle apprend peu d'un si petit nombre.",
  "check.rows_cut": "La ligne la plus longue a {longest} jetons et sera coupée à {limit}.",
  "check.no_worker": "Aucune machine n'est en ligne\u00a0: l'entraînement attendra dans la file.",
  "check.none_selected": "Aucune machine répondant à votre choix n'est en ligne\u00a0: l'entraînement en attendra une.",
  "check.no_gpu": "Seuls des processeurs sont en ligne\u00a0: sans GPU, ce sera long.",
  "check.little_memory": "Il faut environ {needed} Gio de mémoire GPU\u00a0; le plus gros GPU en ligne en a {largest}.",
}
