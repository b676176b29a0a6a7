import { useWords, type Key } from "~/i18n"

const PHASES: Record<string, Key> = {
  waiting: "phase.waiting",
  downloading: "phase.downloading",
  loading: "phase.loading",
  tokenizing: "phase.tokenizing",
  training: "phase.training",
  evaluating: "phase.evaluating",
  saving: "phase.saving",
  merging: "phase.merging",
  converting: "phase.converting",
  quantizing: "phase.quantizing",
  verifying: "phase.verifying",
  uploading: "phase.uploading",
}

/** What a task is doing now, in words. */
export function usePhase(): (phase: string | null | undefined) => string {
  const { t } = useWords()
  return (phase) => {
    const key = phase ? PHASES[phase] : undefined
    return key ? t(key) : (phase ?? t("phase.starting"))
  }
}
