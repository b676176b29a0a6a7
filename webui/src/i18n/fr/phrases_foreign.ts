import type { Phrases } from "../phrases"

/** Sentences of libraries, which are not in our sources. */
export const FOREIGN_PHRASES: Phrases = {
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
}
