/** French words for the settings of what comes with Parsyn, by their English title; other plugins speak their own language. */
export const FRENCH_FIELDS: Record<string, { title: string; help: string }> = {
  "Method": {
    title: "Méthode",
    help: "lora entraîne un petit adaptateur\u00a0; qlora de même, sur une base en 4 bits\u00a0; full entraîne tous les poids.",
  },
  "Epochs": { title: "Époques", help: "Combien de fois toutes les données sont vues." },
  "Learning rate": { title: "Taux d'apprentissage", help: "Auto\u00a0: 2e-4 pour un adaptateur, 1e-5 pour un entraînement complet." },
  "Batch size": { title: "Taille de lot", help: "Lignes à la fois sur le matériel. Auto prend ce qui tient\u00a0; le lot effectif ne change pas." },
  "Longest sequence": {
    title: "Longueur maximale",
    help: "Les lignes plus longues sont coupées. Auto\u00a0: 2048, ou le contexte du modèle s'il est plus court.",
  },
  "Learn from": {
    title: "Apprendre de",
    help: "completions\u00a0: les réponses de l'assistant\u00a0; last_turn\u00a0: la dernière seulement\u00a0; all\u00a0: chaque jeton.",
  },
  "Held back for validation": {
    title: "Réservé à la validation",
    help: "Une part des lignes (0.05) ou un nombre. Auto\u00a0: 0.05 à partir de 100 lignes, sans données de validation.",
  },
  "Pack short rows together": {
    title: "Regrouper les lignes courtes",
    help: "Plus rapide, sans rien changer d'autre\u00a0: les lignes ne se voient jamais. Auto regroupe sur GPU là où c'est prouvé, sinon réunit les lignes de longueur voisine.",
  },
  "Seed": { title: "Graine", help: "La même graine donne le même entraînement." },
  "Rank": { title: "Rang", help: "Taille de l'adaptateur." },
  "Alpha": { title: "Alpha", help: "Poids de l'adaptateur, d'ordinaire le double du rang." },
  "Dropout": { title: "Dropout", help: "Part de l'entrée de l'adaptateur ignorée à l'entraînement." },
  "Adapted layers": { title: "Couches adaptées", help: "all-linear\u00a0: toutes les couches linéaires sauf la tête\u00a0; ou une liste de noms, comme q_proj." },
  "DoRA": { title: "DoRA", help: "Apprend séparément direction et norme\u00a0: plus lent, souvent meilleur aux petits rangs." },
  "Rank-stabilised LoRA": { title: "LoRA stabilisé en rang", help: "Met à l'échelle par la racine du rang\u00a0: pour les grands rangs." },
  "Gradient accumulation": { title: "Accumulation du gradient", help: "Lots par mise à jour. Auto vise un lot effectif de 16 lignes." },
  "Most steps": { title: "Étapes au plus", help: "Arrête l'entraînement plus tôt, quelles que soient les époques." },
  "Learning rate schedule": { title: "Évolution du taux d'apprentissage", help: "Comment le taux évolue au fil de l'entraînement." },
  "Warm-up": { title: "Montée en régime", help: "Part de l'entraînement pendant laquelle le taux d'apprentissage monte." },
  "Warm-up steps": { title: "Étapes de montée", help: "En étapes, au lieu d'une part de l'entraînement." },
  "Weight decay": { title: "Décroissance des poids", help: "Tire les poids vers zéro." },
  "Gradient clipping": { title: "Écrêtage du gradient", help: "0 n'écrête rien." },
  "Optimizer": { title: "Optimiseur", help: "Auto\u00a0: adamw_torch_fused, et adamw_8bit pour qlora sur GPU." },
  "Precision": { title: "Précision", help: "Auto\u00a0: bf16 si le matériel le permet, sinon fp16 avec CUDA, sinon 32 bits." },
  "Base weights in": { title: "Base en", help: "Charge la base figée sur moins de bits, sur GPU. qlora implique 4bit." },
  "Gradient checkpointing": { title: "Recalcul des activations", help: "Moins de mémoire, environ un cinquième plus lent. Auto ne l'active que si nécessaire." },
  "Evaluate every": { title: "Évaluer tous les", help: "Auto\u00a0: environ 20 fois par entraînement." },
  "Save every": { title: "Enregistrer tous les", help: "Auto\u00a0: à chaque évaluation." },
  "Log every": { title: "Mesurer tous les", help: "Auto\u00a0: à chaque étape, environ 1000 fois pour les longs entraînements." },
  "Stop early after": {
    title: "Arrêt anticipé après",
    help: "Arrête quand autant d'évaluations de suite n'ont pas amélioré la perte de validation.",
  },
  "Checkpoints kept": { title: "Points de reprise gardés", help: "En plus du meilleur." },
  "Keep the best": { title: "Garder le meilleur", help: "Le résultat est le meilleur point de reprise selon la validation, et non le dernier." },
  "Sample answers": { title: "Exemples de réponses", help: "Combien de lignes de validation sont traitées à chaque évaluation, ou une liste de questions." },
  "Length of a sample answer": { title: "Longueur d'un exemple", help: "Au plus." },
  "Push to the Hub": { title: "Publier sur le Hub", help: "Identifiant d'un dépôt Hugging Face." },
  "Report to": { title: "Suivi externe", help: "Autres outils de suivi\u00a0: wandb, mlflow, tensorboard." },
}

export const FRENCH_GROUPS: Record<string, string> = {
  Training: "Entraînement",
  Data: "Données",
  Adapter: "Adaptateur",
  Optimizer: "Optimisation",
  "Speed and memory": "Vitesse et mémoire",
  "Evaluation and saving": "Évaluation et enregistrement",
}

export const FRENCH_UNITS: Record<string, string> = {
  rows: "lignes",
  tokens: "jetons",
  steps: "étapes",
  evaluations: "évaluations",
}

export const FRENCH_CHOICES: Record<string, string> = { true: "oui", false: "non", no: "aucune" }
