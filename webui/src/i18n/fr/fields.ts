/** French words for the forms of what comes with Parsyn, by their English words; other plugins speak their own language. */
export const FRENCH_TITLES: Record<string, string> = {
  "Method": "Méthode",
  "Epochs": "Époques",
  "Learning rate": "Taux d'apprentissage",
  "Batch size": "Taille de lot",
  "Longest sequence": "Longueur maximale",
  "Learn from": "Apprendre de",
  "Held back for validation": "Réservé à la validation",
  "Pack short rows together": "Regrouper les lignes courtes",
  "Seed": "Graine",
  "Rank": "Rang",
  "Alpha": "Alpha",
  "Dropout": "Dropout",
  "Adapted layers": "Couches adaptées",
  "DoRA": "DoRA",
  "Rank-stabilised LoRA": "LoRA stabilisé en rang",
  "Gradient accumulation": "Accumulation du gradient",
  "Most steps": "Étapes au plus",
  "Learning rate schedule": "Évolution du taux d'apprentissage",
  "Warm-up": "Montée en régime",
  "Warm-up steps": "Étapes de montée",
  "Weight decay": "Décroissance des poids",
  "Gradient clipping": "Écrêtage du gradient",
  "Optimizer": "Optimiseur",
  "Precision": "Précision",
  "Base weights in": "Base en",
  "Gradient checkpointing": "Recalcul des activations",
  "Evaluate every": "Évaluer tous les",
  "Save every": "Enregistrer tous les",
  "Log every": "Mesurer tous les",
  "Stop early after": "Arrêt anticipé après",
  "Checkpoints kept": "Points de reprise gardés",
  "Keep the best": "Garder le meilleur",
  "Sample answers": "Exemples de réponses",
  "Length of a sample answer": "Longueur d'un exemple",
  "Push to the Hub": "Publier sur le Hub",
  "Report to": "Suivi externe",
  "Quantization": "Quantification",
  "Most rows": "Lignes au plus",
  "Score": "Mesurer sur",
}

export const FRENCH_HELP: Record<string, string> = {
  "lora trains a small adapter; qlora the same on a base in 4 bit; full trains every weight.":
    "lora entraîne un petit adaptateur\u00a0; qlora de même, sur une base en 4 bits\u00a0; full entraîne tous les poids.",
  "How often the whole dataset is seen.": "Combien de fois toutes les données sont vues.",
  "Auto is 2e-4 for adapters and 1e-5 for full training.":
    "Auto\u00a0: 2e-4 pour un adaptateur, 1e-5 pour un entraînement complet.",
  "Rows at a time on the device. Auto takes what fits; the effective batch stays the same.":
    "Lignes à la fois sur le matériel. Auto prend ce qui tient\u00a0; le lot effectif ne change pas.",
  "Longer rows are cut. Auto is 2048, or the model's context where that is shorter.":
    "Les lignes plus longues sont coupées. Auto\u00a0: 2048, ou le contexte du modèle s'il est plus court.",
  "completions: the assistant's answers; last_turn: only the last one; all: every token.":
    "completions\u00a0: les réponses de l'assistant\u00a0; last_turn\u00a0: la dernière seulement\u00a0; all\u00a0: chaque jeton.",
  "A part of the rows (0.05) or a number of rows. Auto is 0.05 from 100 rows on, when no validation dataset is given.":
    "Une part des lignes (0,05) ou un nombre. Auto\u00a0: 0,05 à partir de 100 lignes, sans données de validation.",
  "Faster, and changes nothing else: rows never see one another. Auto packs where attention gains by it and the model is proven to keep rows apart, and else puts rows of like length into one batch.":
    "Plus rapide, sans rien changer d'autre\u00a0: les lignes ne se voient jamais. Auto regroupe là où l'attention y gagne et où le modèle est prouvé les tenir séparées, sinon réunit les lignes de longueur voisine.",
  "The same seed gives the same run.": "La même graine donne le même entraînement.",
  "Size of the adapter.": "Taille de l'adaptateur.",
  "Weight of the adapter, by custom twice the rank.": "Poids de l'adaptateur, d'ordinaire le double du rang.",
  "A part of the adapter's input dropped in training.": "Part de l'entrée de l'adaptateur ignorée à l'entraînement.",
  "all-linear is every linear layer but the head; or a list of names such as q_proj.":
    "all-linear\u00a0: toutes les couches linéaires sauf la tête\u00a0; ou une liste de noms, comme q_proj.",
  "Learns direction and size apart: slower, at low ranks often better.":
    "Apprend séparément direction et norme\u00a0: plus lent, souvent meilleur aux petits rangs.",
  "Scales by the root of the rank: for high ranks.":
    "Met à l'échelle par la racine du rang\u00a0: pour les grands rangs.",
  "Batches for each update. Auto makes an effective batch of 16 rows.":
    "Lots par mise à jour. Auto vise un lot effectif de 16 lignes.",
  "Ends the run early, whatever the epochs.": "Arrête l'entraînement plus tôt, quelles que soient les époques.",
  "How the learning rate moves over the run.": "Comment le taux évolue au fil de l'entraînement.",
  "The part of the run in which the learning rate rises.":
    "Part de l'entraînement pendant laquelle le taux d'apprentissage monte.",
  "In steps, instead of a part of the run.": "En étapes, au lieu d'une part de l'entraînement.",
  "Pulls weights towards zero.": "Tire les poids vers zéro.",
  "0 clips nothing.": "0 n'écrête rien.",
  "Auto is adamw_torch_fused, and adamw_8bit for qlora on a GPU.":
    "Auto\u00a0: adamw_torch_fused, et adamw_8bit pour qlora sur GPU.",
  "Auto is bf16 where the device has it, else fp16 on CUDA, else 32 bit.":
    "Auto\u00a0: bf16 si le matériel le permet, sinon fp16 avec CUDA, sinon 32 bits.",
  "Loads the frozen base in fewer bits, where the agent can. qlora means 4bit.":
    "Charge la base figée sur moins de bits, là où l'agent le peut. qlora implique 4bit.",
  "Less memory, about a fifth slower. Auto turns it on only where it is needed.":
    "Moins de mémoire, environ un cinquième plus lent. Auto ne l'active que si nécessaire.",
  "Auto is about 20 times in the run.": "Auto\u00a0: environ 20 fois par entraînement.",
  "Auto saves with each evaluation.": "Auto\u00a0: à chaque évaluation.",
  "Auto is each step, in long runs about 1000 times.":
    "Auto\u00a0: à chaque étape, environ 1000 fois pour les longs entraînements.",
  "Ends the run when this many evaluations in a row brought no better validation loss.":
    "Arrête quand autant d'évaluations de suite n'ont pas amélioré la perte de validation.",
  "Besides the best one.": "En plus du meilleur.",
  "The result is the best checkpoint by validation loss, not the last one.":
    "Le résultat est le meilleur point de reprise selon la validation, et non le dernier.",
  "How many validation rows are answered at each evaluation, or a list of prompts.":
    "Combien de lignes de validation sont traitées à chaque évaluation, ou une liste de questions.",
  "At most.": "Au plus.",
  "A repository id on the Hugging Face Hub.": "Identifiant d'un dépôt Hugging Face.",
  "Other trackers: wandb, mlflow, tensorboard.": "Autres outils de suivi\u00a0: wandb, mlflow, tensorboard.",
  "Bits for each weight. F16 keeps 16, Q8_0 loses next to nothing, Q4_K_M is the usual choice for small machines.":
    "Bits par poids. F16 en garde 16, Q8_0 ne perd presque rien, Q4_K_M est le choix courant pour les petites machines.",
  "Score only this many rows, chosen by the seed. Empty scores all.":
    "Ne mesure qu'autant de lignes, tirées selon la graine. Vide\u00a0: toutes.",
  "Longer rows are cut. Empty is 2048, or the model's context where shorter.":
    "Les lignes plus longues sont coupées. Vide\u00a0: 2048, ou le contexte du modèle s'il est plus court.",
  "Chooses the rows when there is a limit.": "Choisit les lignes quand leur nombre est limité.",
}

export const FRENCH_GROUPS: Record<string, string> = {
  Training: "Entraînement",
  Data: "Données",
  Adapter: "Adaptateur",
  Optimizer: "Optimisation",
  "Speed and memory": "Vitesse et mémoire",
  Format: "Format",
  "Evaluation and saving": "Évaluation et enregistrement",
}

export const FRENCH_UNITS: Record<string, string> = {
  rows: "lignes",
  tokens: "jetons",
  steps: "étapes",
  evaluations: "évaluations",
}

/** Measures, as titles and as the names of their results. */
export const FRENCH_MEASURES: Record<string, string> = {
  Perplexity: "Perplexité",
  perplexity: "perplexité",
  loss: "perte",
}

export const FRENCH_CHOICES: Record<string, string> = {
  true: "oui",
  false: "non",
  no: "aucune",
  auto: "automatique",
  lora: "Adaptateur",
  qlora: "Adaptateur, base en 4 bits",
  full: "Tous les poids",
  completions: "Réponses de l'assistant",
  last_turn: "Dernière réponse seulement",
  all: "Chaque jeton",
  cosine: "Cosinus",
  linear: "Linéaire",
  constant: "Constant",
  constant_with_warmup: "Constant après une montée",
  cosine_with_restarts: "Cosinus avec reprises",
  polynomial: "Polynomial",
  inverse_sqrt: "Inverse de la racine",
  "4bit": "4 bits",
  "8bit": "8 bits",
}

export const FRENCH_PRESET_TITLES: Record<string, string> = {
  "Balanced": "Équilibré",
  "Quick try": "Essai rapide",
  "Thorough": "Approfondi",
  "Low memory": "Peu de mémoire",
}

export const FRENCH_PRESET_TEXTS: Record<string, string> = {
  "An adapter of rank 16, three times through the data. A good first choice for most data.":
    "Un adaptateur de rang 16, trois passages sur les données. Un bon premier choix dans la plupart des cas.",
  "At most 60 steps with a small adapter: shows whether data and model go together. The result is a first impression, not more.":
    "60 étapes au plus avec un petit adaptateur\u00a0: montre si données et modèle vont ensemble. Le résultat n'est qu'une première impression.",
  "A larger adapter that learns more slowly, up to five times through the data; ends by itself when the validation loss stops falling. Takes about twice as long as Balanced.":
    "Un adaptateur plus grand qui apprend plus lentement, jusqu'à cinq passages\u00a0; s'arrête de lui-même quand la perte de validation ne baisse plus. Environ deux fois plus long qu'Équilibré.",
  "The base in 4 bit and one row at a time: needs the least memory, and is slower. Rows are cut at 1024 tokens. For NVIDIA GPUs.":
    "La base en 4 bits, une ligne à la fois\u00a0: le moins de mémoire, mais plus lent. Les lignes sont coupées à 1024 jetons. Pour GPU NVIDIA.",
}
