import type { frame as english } from "../en/frame"
import type { Translation } from "../message"

export const frame: Translation<typeof english> = {
  "nav.label": "Navigation principale",
  "nav.skip": "Aller au contenu",
  "nav.more": "Plus",
  "nav.overview": "Accueil",
  "nav.datasets": "Données",
  "nav.models": "Modèles",
  "nav.training": "Entraînement",
  "nav.workers": "Machines",
  "nav.chat": "Chat",
  "nav.settings": "Réglages",

  "live.online": "En direct",
  "live.connecting": "Connexion",
  "live.waiting": "Reconnexion dans {seconds} s",
  "live.offline": "Hors ligne",

  "palette.open": "Rechercher ou agir",
  "palette.placeholder": "Un nom ou une action",
  "palette.results": "Résultats",
  "palette.nothing": "Rien ne s'appelle «\u00a0{text}\u00a0».",
  "palette.action": "Action",
  "palette.page": "Page",

  "theme.system": "Système",
  "theme.light": "Clair",
  "theme.dark": "Sombre",

  "login.title": "Connexion",
  "login.enter": "Se connecter",
  "login.wrong": "Adresse e-mail ou mot de passe incorrect.",

  "setup.title": "Configurer ce hub",
  "setup.text": "Le premier compte est propriétaire du hub. Il pourra en inviter d'autres.",
  "setup.create": "Créer le compte",
  "setup.find_link":
    "Ce hub n'a pas encore de compte. Ouvrez le lien à usage unique affiché par «\u00a0parsyn serve\u00a0»\u00a0; un nouveau s'affiche à chaque démarrage.",
  "setup.done_title": "Ce hub est déjà configuré",
  "setup.done_text": "Il a déjà un propriétaire. Connectez-vous, ou demandez-lui un compte.",

  "crash.title": "Impossible d'afficher cette page",
  "crash.text": "Vos données sont intactes. Si le hub a été mis à jour entre-temps, recharger la page suffit.",
  "crash.reload": "Recharger",
  "crash.no_hub": "Le hub ne répond pas",
  "not_found.title": "Cette page n'existe pas",
  "not_found.text": "L'adresse est peut-être mal saisie, ou son contenu a été supprimé.",

  "overview.start": "Pour commencer",
  "overview.step_data": "Ajouter des données",
  "overview.step_data_text": "Conversations, instructions ou texte brut, en JSONL, CSV ou Parquet.",
  "overview.step_model": "Choisir un modèle",
  "overview.step_model_text": "N'importe quel modèle de langue causal, par son identifiant Hugging Face ou depuis un dossier.",
  "overview.step_worker": "Ajouter une machine",
  "overview.step_worker_text": "Une machine avec GPU se connecte d'elle-même à ce hub. Un simple processeur convient aussi, en plus lent.",
  "overview.step_done": "Fait",
  "overview.step_open": "À faire",
  "overview.running": "En cours",
  "overview.attention": "À regarder",
  "overview.recent_jobs": "Travaux récents",
  "overview.recent_models": "Modèles récents",
  "overview.no_jobs": "Aucun travail n'a encore été lancé.",
  "overview.no_models": "Aucun modèle pour l'instant.",
  "overview.online_of": "{online} sur {total} en ligne",
  "overview.gpu_use": "{share} d'utilisation GPU en moyenne",
  "overview.storage": "Stockage utilisé",
}
