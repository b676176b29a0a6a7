import type { WorkerType } from "~/api/types.gen"
import { useWords } from "~/i18n"

const TYPES: WorkerType[] = ["both", "fine_tuner", "prompter"]

/** What a machine may be used for, as the options of a select. */
export function TypeOptions() {
  const { t } = useWords()
  return TYPES.map((type) => (
    <option key={type} value={type}>
      {t(`worker_type.${type}`)}
    </option>
  ))
}
