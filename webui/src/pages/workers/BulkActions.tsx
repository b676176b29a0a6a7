import type { WorkerOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { useVerbs, verbsFor, type Verb } from "./actions"
import { VERB_ICONS } from "./WorkerMenu"

const VERBS: Verb[] = ["pause", "drain", "resume"]

/** What one does with the machines that are ticked; each verb reaches those that it makes sense for. */
export function BulkActions({ workers, onDone }: { workers: WorkerOut[]; onDone: () => void }) {
  const { t } = useWords()
  const run = useVerbs()
  return VERBS.map((verb) => {
    const these = workers.filter((worker) => verbsFor(worker).includes(verb))
    const Icon = VERB_ICONS[verb]
    return (
      <Button
        key={verb}
        title={t(`workers.${verb}_text`)}
        disabled={these.length === 0}
        onClick={() => {
          void run(verb, these)
          onDone()
        }}
      >
        <Icon size={16} aria-hidden /> {t(`workers.${verb}`)}
      </Button>
    )
  })
}
