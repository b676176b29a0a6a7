import type { queue as english } from "../en/queue"
import type { Translation } from "../message"

export const queue: Translation<typeof english> = {
  "queue.title": "En attente",
  "queue.text": "Dans l'ordre où les travaux seront proposés. Chacun son tour\u00a0; vous pouvez déplacer les vôtres.",
  "queue.next": "Le prochain de la file.",
  "queue.hidden": {
    one: "Et {count} travail de quelqu'un d'autre.",
    other: "Et {count} travaux d'autres personnes.",
    many: "Et {count} travaux d'autres personnes.",
  },
  "queue.starts_in": "Début dans {time} environ.",
  "queue.runs": "Durée prévue\u00a0: {time}.",
  "queue.move": "Déplacer {name}",
  "queue.move_hint": "Faites glisser, ou utilisez les flèches du clavier",
  "queue.up": "Monter {name}",
  "queue.down": "Descendre {name}",
  "queue.moved": "{name} a été déplacé.",
  "queue.priority_of": "Priorité de {name}",
  "queue.priority_set": "{name} a maintenant la priorité «\u00a0{priority}\u00a0».",
  "priority.high": "haute",
  "priority.normal": "normale",
  "priority.low": "basse",

  "placement.tab": "Choix de la machine",
  "placement.pending": "Une machine sera cherchée au lancement de l'entraînement.",
  "placement.nothing": "Aucune machine n'a été cherchée.",
  "placement.ranking": "Machines qui conviennent, la plus vite prête d'abord",
  "placement.chosen": "retenue",
  "placement.chosen_text": "{name} a été retenue\u00a0: {reason}",
  "placement.passed_over": { one: "{count} machine écartée", other: "{count} machines écartées", many: "{count} machines écartées" },
  "placement.needs": "Demande au moins {memory} de mémoire GPU",
  "placement.tokens": "{tokens} jetons à apprendre",
  "placement.looked": "Recherche faite",
  "placement.about": "environ {time}",
  "placement.no_prediction": "durée encore inconnue",
  "placement.free_in": "Libre dans {time} environ.",

  "timeline.unreachable": "Injoignable",
  "timeline.after": "après {time}",
}
