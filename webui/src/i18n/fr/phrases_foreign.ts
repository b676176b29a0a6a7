import type { Phrases } from "../phrases"

/** Sentences of libraries, and some that are put together from parts: no test finds them in our sources. */
export const FOREIGN_PHRASES: Phrases = {
  "from its score": "d'après son score",
  "from an assumed score; it was not measured yet": "d'après un score supposé\u00a0; elle n'a pas encore été mesurée",
  "from {} like this on {}": "d'après {0} de ce genre sur {1}",
  "from {} of other sizes or lengths on {}": "d'après {0} d'autres tailles ou longueurs sur {1}",
  "from {} elsewhere and its score of {}": "d'après {0} ailleurs et son score de {1}",
  "this machine": "cette machine",
  "1 run": "1 passage",
  "{} runs": "{0} passages",
  "Field required": "À renseigner",
  "Extra inputs are not permitted": "Ce nom n'est pas connu ici.",
  "Input should be a valid string": "Un texte est attendu.",
  "Input should be a valid integer": "Un nombre entier est attendu.",
  "Input should be a valid integer, unable to parse string as an integer": "Un nombre entier est attendu.",
  "Input should be a valid list": "Une liste est attendue.",
  "Input should be a valid dictionary": "Des noms et des valeurs sont attendus.",
  "Input should be greater than {}": "Plus de {0} est attendu.",
  "Input should be greater than or equal to {}": "{0} au moins est attendu.",
  "Input should be less than or equal to {}": "{0} au plus est attendu.",
  "String should have at least {} character": "{0} caractère au moins.",
  "String should have at most {} characters": "{0} caractères au plus.",
  " First: Row {}, line {}: {}": " La première\u00a0: enregistrement {0}, ligne {1}\u00a0: {2}",
  " First: Row {}, line {}, column \"{}\": {}": " La première\u00a0: enregistrement {0}, ligne {1}, colonne «\u00a0{2}\u00a0»\u00a0: {3}",
}
