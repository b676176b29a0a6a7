import { CirclePause, CirclePlay, Gauge, Hourglass, Trash2 } from "lucide-react"
import { useState } from "react"
import type { WorkerOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Menu, type MenuItem } from "~/parts/Menu"
import { useMeasure, useVerbs, verbsFor, type Verb } from "./actions"
import { RemoveWorker } from "./RemoveWorker"

export const VERB_ICONS = { pause: CirclePause, drain: Hourglass, resume: CirclePlay } as const satisfies Record<Verb, unknown>

/** What one does with a machine from its row. */
export function WorkerMenu({ worker }: { worker: WorkerOut }) {
  const { t } = useWords()
  const run = useVerbs()
  const measure = useMeasure()
  const [isRemoving, setIsRemoving] = useState(false)
  const verbs = verbsFor(worker).map((verb): MenuItem => {
    const Icon = VERB_ICONS[verb]
    return { label: t(`workers.${verb}`), icon: <Icon size={16} aria-hidden />, onSelect: () => void run(verb, [worker]) }
  })
  return (
    <>
      <Menu
        label={t("workers.actions_of", { name: worker.name })}
        items={[
          ...verbs,
          { label: t("workers.measure"), icon: <Gauge size={16} aria-hidden />, onSelect: () => void measure(worker), disabled: worker.status === "offline" },
          { label: t("workers.remove"), icon: <Trash2 size={16} aria-hidden />, onSelect: () => setIsRemoving(true), danger: true },
        ]}
      />
      {isRemoving && <RemoveWorker worker={worker} onClose={() => setIsRemoving(false)} />}
    </>
  )
}
