import { ArrowRight, Boxes, Database, Play, Plus, Server, type LucideIcon } from "lucide-react"
import { Dialog } from "radix-ui"
import { useMemo, useState, type KeyboardEvent } from "react"
import { useNavigate } from "react-router"
import { useList } from "~/api/queries"
import type { DatasetOut, ModelOut, TrainingJobOut, WorkerOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { ENTRIES } from "./navigation"

interface Hit {
  id: string
  name: string
  kind: string
  icon: LucideIcon
  to: string
}

const MOST = 12

/** Finds anything by name and runs the common actions. */
export function Palette({ open, onClose }: { open: boolean; onClose: () => void }) {
  const { t } = useWords()
  return (
    <Dialog.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-[#0008]" />
        <Dialog.Content
          aria-describedby={undefined}
          className="fixed top-[10dvh] left-1/2 z-50 w-[calc(100vw-2rem)] max-w-xl -translate-x-1/2 overflow-hidden rounded-xl border border-line bg-raised shadow-pop"
        >
          <Dialog.Title className="sr-only">{t("palette.open")}</Dialog.Title>
          <Finder onClose={onClose} />
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

function Finder({ onClose }: { onClose: () => void }) {
  const { t } = useWords()
  const navigate = useNavigate()
  const [text, setText] = useState("")
  const [at, setAt] = useState(0)
  const all = useHits()
  const hits = useMemo(() => find(all, text), [all, text])
  const go = (hit: Hit | undefined) => {
    if (!hit) return
    onClose()
    void navigate(hit.to)
  }
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setAt(Math.min(at + 1, hits.length - 1))
    else if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0))
    else if (event.key === "Enter") go(hits[at])
    else return
    event.preventDefault()
  }
  return (
    <>
      <input
        autoFocus
        role="combobox"
        aria-expanded
        aria-controls="palette-hits"
        aria-activedescendant={hits[at] && `hit-${hits[at].id}`}
        aria-label={t("palette.open")}
        placeholder={t("palette.placeholder")}
        value={text}
        onChange={(event) => {
          setText(event.target.value)
          setAt(0)
        }}
        onKeyDown={onKey}
        className="w-full border-b border-line bg-transparent px-4 py-3 -outline-offset-2"
      />
      <ul id="palette-hits" role="listbox" aria-label={t("palette.results")} className="max-h-[50dvh] overflow-y-auto p-1.5">
        {hits.map((hit, index) => (
          <li
            key={hit.id}
            id={`hit-${hit.id}`}
            role="option"
            aria-selected={index === at}
            onClick={() => go(hit)}
            onMouseMove={() => setAt(index)}
            className="flex cursor-pointer items-center gap-3 rounded-md px-3 py-2 text-sm aria-selected:bg-accent-soft"
          >
            <hit.icon size={16} aria-hidden className="shrink-0 text-muted" />
            <span className="min-w-0 truncate">{hit.name}</span>
            <span className="ml-auto shrink-0 text-xs text-muted">{hit.kind}</span>
          </li>
        ))}
        {hits.length === 0 && <li className="px-3 py-6 text-center text-sm text-muted">{t("palette.nothing", { text })}</li>}
      </ul>
    </>
  )
}

function useHits(): Hit[] {
  const { t } = useWords()
  const datasets = useList<DatasetOut>("/datasets").data?.items
  const models = useList<ModelOut>("/models").data?.items
  const jobs = useList<TrainingJobOut>("/training-jobs").data?.items
  const workers = useList<WorkerOut>("/workers").data?.items
  return useMemo(() => {
    const actions: Hit[] = [
      { id: "new-training", name: t("training.new"), kind: t("palette.action"), icon: Plus, to: "/training/new" },
      { id: "new-dataset", name: t("datasets.add"), kind: t("palette.action"), icon: Plus, to: "/datasets?add=1" },
      { id: "new-model", name: t("models.add"), kind: t("palette.action"), icon: Plus, to: "/models?add=1" },
      { id: "new-worker", name: t("workers.add"), kind: t("palette.action"), icon: Plus, to: "/workers?add=1" },
    ]
    const pages = ENTRIES.map(({ to, label }): Hit => ({ id: to, name: t(label), kind: t("palette.page"), icon: ArrowRight, to }))
    const named = <T extends { id: number; name: string }>(items: T[] | undefined, base: string, kind: string, icon: LucideIcon) =>
      (items ?? []).map(({ id, name }): Hit => ({ id: `${base}-${id}`, name, kind, icon, to: `/${base}/${id}` }))
    return [
      ...actions,
      ...pages,
      ...named(jobs, "training", t("nav.training"), Play),
      ...named(datasets, "datasets", t("nav.datasets"), Database),
      ...named(models, "models", t("nav.models"), Boxes),
      ...(workers ?? []).map(({ id, name }): Hit => ({ id: `w-${id}`, name, kind: t("nav.workers"), icon: Server, to: `/workers?worker=${id}` })),
    ]
  }, [t, datasets, models, jobs, workers])
}

/** Every word must occur; a name that begins with the text comes first, of such names the shortest. */
function find(hits: Hit[], text: string): Hit[] {
  const plain = (value: string) => value.toLowerCase().normalize("NFD").replace(/\p{M}/gu, "")
  const words = plain(text).split(/\s+/).filter(Boolean)
  const matching = hits.filter((hit) => words.every((word) => plain(`${hit.name} ${hit.kind}`).includes(word)))
  const rank = (hit: Hit) => (plain(hit.name).startsWith(plain(text.trim())) ? 0 : 1)
  const order = (a: Hit, b: Hit) => rank(a) - rank(b) || (rank(a) === 0 ? a.name.length - b.name.length : 0)
  return matching.sort(order).slice(0, MOST)
}
