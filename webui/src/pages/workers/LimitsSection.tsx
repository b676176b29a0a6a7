import { useMutation } from "@tanstack/react-query"
import { useState, type FormEvent } from "react"
import { problemAt } from "~/api/http"
import { useMe } from "~/api/session"
import type { WorkerOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { ErrorNote } from "~/parts/ErrorNote"
import { Field, Input } from "~/parts/Field"
import { Section } from "~/parts/Page"
import { notify } from "~/state/notices"
import { change } from "./actions"
import { draftOf, limitsOf, toggled, type EditorProps, type LimitsDraft } from "./limits"
import { HoursEditor } from "./HoursEditor"

const OWN_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone

/** What the owner lets the machine do: when, with how much GPU memory, and for which projects. */
export function LimitsSection({ worker }: { worker: WorkerOut }) {
  const { t } = useWords()
  const known = draftOf(worker.limits, OWN_ZONE)
  const [edited, setEdited] = useState<LimitsDraft | null>(null)
  const draft = edited ?? known
  const isChanged = edited !== null && JSON.stringify(edited) !== JSON.stringify(known)
  const save = useMutation({
    mutationFn: () => change(worker, { limits: limitsOf(draft) }),
    onSuccess: () => {
      const before = worker.limits
      setEdited(null)
      notify({ text: t("limits.saved", { name: worker.name }), undo: () => change(worker, { limits: before }) })
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    save.mutate()
  }
  const set = (values: Partial<LimitsDraft>) => setEdited({ ...draft, ...values })
  const problem = problemAt(save.error, "limits", "vram_cap")
  return (
    <Section title={t("limits.title")}>
      <form onSubmit={submit} className="card space-y-5 p-4">
        <HoursEditor draft={draft} onChange={set} />
        {worker.hardware?.gpu && <VramCap draft={draft} total={worker.hardware.vram_total} problem={problem} onChange={set} />}
        <Projects draft={draft} onChange={set} />
        <ErrorNote error={save.error} except={(loc) => loc === "limits.vram_cap"} />
        {isChanged && (
          <div className="flex justify-end gap-2">
            <Button look="quiet" onClick={() => setEdited(null)}>
              {t("common.cancel")}
            </Button>
            <Button look="main" type="submit" busy={save.isPending}>
              {t("common.save")}
            </Button>
          </div>
        )}
      </form>
    </Section>
  )
}

function VramCap({ draft, total, problem, onChange }: EditorProps & { total: number | null | undefined; problem: string | undefined }) {
  const { t, format } = useWords()
  return (
    <Field label={t("limits.vram")} hint={t("limits.vram_hint", { total: format.bytes(total) })} error={problem}>
      {(control) => (
        <span className="flex items-center gap-2">
          <Input {...control} className="!w-32" type="number" min={0.3} step="any" inputMode="decimal" value={draft.cap} onChange={(event) => onChange({ cap: event.target.value })} />
          <span className="text-sm text-muted">{t("limits.gigabytes")}</span>
        </span>
      )}
    </Field>
  )
}

function Projects({ draft, onChange }: EditorProps) {
  const { t } = useWords()
  const projects = useMe().data?.projects ?? []
  const chosen = draft.projects
  return (
    <fieldset>
      <legend className="mb-1 text-sm font-medium">{t("limits.projects")}</legend>
      <label className="flex min-h-8 items-center gap-2 text-sm">
        <input type="radio" checked={chosen === null} onChange={() => onChange({ projects: null })} className="accent-[var(--c-accent)]" />
        {t("limits.all_projects")}
      </label>
      <label className="flex min-h-8 items-center gap-2 text-sm">
        <input type="radio" checked={chosen !== null} onChange={() => onChange({ projects: projects.map(({ id }) => id) })} className="accent-[var(--c-accent)]" />
        {t("limits.only_projects")}
      </label>
      {chosen !== null && (
        <div className="ml-6">
          {projects.map(({ id, name }) => (
            <label key={id} className="flex min-h-8 items-center gap-2 text-sm">
              <input type="checkbox" checked={chosen.includes(id)} onChange={() => onChange({ projects: toggled(chosen, id) })} className="accent-[var(--c-accent)]" />
              {name}
            </label>
          ))}
          {chosen.length === 0 && <p className="text-sm text-warn">{t("limits.no_project")}</p>}
        </div>
      )}
    </fieldset>
  )
}
