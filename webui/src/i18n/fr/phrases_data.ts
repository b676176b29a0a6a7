import type { Phrases } from "../phrases"

/** What is said of files and rows. */
export const DATA_PHRASES: Phrases = {
  "The file is empty. Upload a file with at least one row.": "Le fichier est vide. Téléversez un fichier d'au moins une ligne.",
  "The file has no rows. Upload a file with at least one row.": "Le fichier n'a aucune ligne. Téléversez-en un avec au moins une ligne.",
  "The file is {}, from line 1 on. Save it as UTF-8 and upload it again.":
    "Le fichier est en {0}, dès la ligne 1. Enregistrez-le en UTF-8 et téléversez-le à nouveau.",
  "These bytes are not UTF-8; they look like {}. Save the file as UTF-8.":
    "Ces octets ne sont pas de l'UTF-8\u00a0; ils ressemblent à du {0}. Enregistrez le fichier en UTF-8.",
  "\"{}\" is {}. Upload JSONL, a JSON array, CSV, Parquet or plain text, as it is or compressed with gzip or zstd.":
    "«\u00a0{0}\u00a0» est {1}. Téléversez du JSONL, un tableau JSON, du CSV, du Parquet ou du texte, tel quel ou compressé en gzip ou zstd.",
  "\"{}\" is named like {} but holds {}. It was read as {}; rename it to be rid of this note.":
    "«\u00a0{0}\u00a0» porte un nom de {1} mais contient du {2}. Il a été lu comme {3}\u00a0; renommez-le pour ne plus voir cette note.",
  "You said that the file is {}, but it is {}. Upload it again without naming the format.":
    "Vous avez annoncé du {0}, mais le fichier est du {1}. Téléversez-le à nouveau sans nommer le format.",
  "The {} data is damaged or cut off. Compress the file again and upload it once more.":
    "Les données {0} sont abîmées ou coupées. Compressez le fichier à nouveau et téléversez-le encore.",
  "The file holds more than {} bytes once decompressed. Split it into smaller files.":
    "Le fichier fait plus de {0} octets une fois décompressé. Découpez-le en fichiers plus petits.",
  "The row is larger than {} bytes. Split it or leave it out.": "La ligne dépasse {0} octets. Découpez-la ou retirez-la.",
  "The row is larger than {} bytes: its last cell is huge, or a quote that opens in it never closes. Repair the row or leave it out.":
    "La ligne dépasse {0} octets\u00a0: sa dernière cellule est énorme, ou un guillemet ouvert n'est jamais fermé. Réparez la ligne ou retirez-la.",
  "A quoted cell is followed by more text. Double the quotes inside a cell.":
    "Une cellule entre guillemets est suivie d'autre texte. Doublez les guillemets à l'intérieur d'une cellule.",
  "A quote that opens in this row never closes. Close it, or double quotes in a cell.":
    "Un guillemet ouvert dans cette ligne n'est jamais fermé. Fermez-le, ou doublez les guillemets dans une cellule.",
  "The row has {} cells where the header has {}. Quote cells that hold the delimiter, or add the missing ones.":
    "La ligne a {0} cellules, l'en-tête {1}. Mettez entre guillemets les cellules qui contiennent le séparateur, ou ajoutez celles qui manquent.",
  "The header names the column \"{}\" more than once. Give each its own name.":
    "L'en-tête nomme plusieurs fois la colonne «\u00a0{0}\u00a0». Donnez à chacune son nom.",
  "The cell holds a NUL byte. Remove it.": "La cellule contient un octet NUL. Retirez-le.",
  "The row holds a NUL byte. Remove it.": "La ligne contient un octet NUL. Retirez-le.",
  "This is not valid JSON: {}. Repair the row.": "Ce n'est pas du JSON valide\u00a0: {0}. Réparez la ligne.",
  "This row is {}, not a JSON object. Write each row as {\"column\": value, …}.":
    "Cette ligne est {0}, pas un objet JSON. Écrivez chaque ligne comme {\"colonne\": valeur, …}.",
  "The row is nested deeper than {} levels. Flatten it.": "La ligne est imbriquée sur plus de {0} niveaux. Aplatissez-la.",
  "{} is not a JSON number. Write null or leave the row out.": "{0} n'est pas un nombre JSON. Écrivez null ou retirez la ligne.",
  "The JSON ends in the middle: a quote or bracket that opens here never closes, or the file was cut off. Repair it or upload it again, whole.":
    "Le JSON s'arrête au milieu\u00a0: un guillemet ou un crochet ouvert ici n'est jamais fermé, ou le fichier a été coupé. Réparez-le ou téléversez-le à nouveau, entier.",
  "There is more text after the end of the JSON array. Put all rows in one array.":
    "Il y a du texte après la fin du tableau JSON. Mettez toutes les lignes dans un seul tableau.",
  "\"{}\" is empty. Fill it in or leave the row out.": "«\u00a0{0}\u00a0» est vide. Remplissez-le ou retirez la ligne.",
  "\"{}\" {}. Fill it in or leave the row out.": "«\u00a0{0}\u00a0» {1}. Remplissez-le ou retirez la ligne.",
  "Text is expected, not {}.": "Du texte est attendu, pas {0}.",
  "A list of whole numbers is expected.": "Une liste de nombres entiers est attendue.",
  "A list of turns is expected, not {}.": "Une liste de tours est attendue, pas {0}.",
  "The conversation is empty. Leave the row out.": "La conversation est vide. Retirez la ligne.",
  "The conversation does not end with an assistant turn.": "La conversation ne se termine pas par un tour de l'assistant.",
  "No assistant turn is there to learn from (or all have weight 0).": "Aucun tour de l'assistant à apprendre (ou tous ont un poids de 0).",
  "Chosen and rejected are the same. Leave the row out.": "«\u00a0chosen\u00a0» et «\u00a0rejected\u00a0» sont identiques. Retirez la ligne.",
  "The row has a prompt but no answer to learn from.": "La ligne a une question mais pas de réponse à apprendre.",
  "The columns fit no shape. Map them to prompt and completion, messages or text.":
    "Les colonnes ne correspondent à aucune forme. Associez-les à prompt et completion, messages ou text.",
  "The columns can be read as {}. Say which with a mapping.": "Les colonnes peuvent se lire comme {0}. Dites laquelle par une association.",
  "{} read as {}, all usable.": "{0} lues comme {1}, toutes utilisables.",
  "1 row": "1 ligne",
  "{} rows": "{0} lignes",
  "{} of {} rows are usable; {} left out.{}": "{0} lignes sur {1} sont utilisables\u00a0; {2} laissées de côté.{3}",
  "{} of {} rows ({}) cannot be used, {}.{}": "{0} lignes sur {1} ({2}) ne peuvent pas être utilisées, {3}.{4}",
  "and strict was asked for": "et le mode strict est demandé",
  "above the {} that may be left out": "plus que les {0} qui peuvent être laissés de côté",
  "{} read.": "{0} lues.",
  "\"{}\" asks and \"{}\" answers": "«\u00a0{0}\u00a0» demande et «\u00a0{1}\u00a0» répond",
  "\"{}\" is learnt as running text": "«\u00a0{0}\u00a0» est appris comme du texte suivi",
  "\"{}\" may be the answer to the prompt": "«\u00a0{0}\u00a0» peut être la réponse à la question",
  "\"{}\" holds role/content turns": "«\u00a0{0}\u00a0» contient des tours role/content",
  "\"{}\" holds from/value turns": "«\u00a0{0}\u00a0» contient des tours from/value",
  "prompt without an answer": "question sans réponse",
  "The chat template refused this row: {}.": "Le modèle de conversation a refusé cette ligne\u00a0: {0}.",
  "The Parquet file is damaged or uses what the reader does not know. Write it again and upload it once more.":
    "Le fichier Parquet est abîmé ou utilise ce que le lecteur ne connaît pas. Réécrivez-le et téléversez-le encore.",
  "Reading the file took longer than {} s and was stopped. Split it into smaller files.":
    "La lecture du fichier a dépassé {0} s et a été arrêtée. Découpez-le en fichiers plus petits.",
  "The statistics are still being computed.": "Les statistiques sont encore en cours de calcul.",
  "There are no statistics before the file is ready.": "Pas de statistiques avant que le fichier soit prêt.",
  "The file is still being checked.": "Le fichier est encore en cours de vérification.",
  "The file has {} bytes; at most {} are taken.": "Le fichier fait {0} octets\u00a0; {1} au plus sont acceptés.",
  "There are no weights: no file ends in .safetensors.": "Il n'y a pas de poids\u00a0: aucun fichier ne finit par .safetensors.",
  "There is no tokenizer (tokenizer.json); save it beside the weights.":
    "Il n'y a pas de tokenizer (tokenizer.json)\u00a0; enregistrez-le à côté des poids.",
  "It is an adapter without its model; import the model that it was trained on.":
    "C'est un adaptateur sans son modèle\u00a0; importez le modèle sur lequel il a été entraîné.",
  "{} is not a safetensors file, or it is cut off.": "{0} n'est pas un fichier safetensors, ou il est coupé.",
  "{} may be a pickle, which can run code when it is read. Save the model as safetensors and leave such files out.":
    "{0} peut être un pickle, qui peut exécuter du code à la lecture. Enregistrez le modèle en safetensors et laissez ces fichiers de côté.",
  "The upload of {} is not complete.": "Le téléversement de {0} n'est pas complet.",
}
