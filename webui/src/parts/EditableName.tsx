import { Pencil } from "lucide-react"
import { useState, type FormEvent } from "react"
import { useWords } from "~/i18n"
import { Button, IconButton } from "./Button"
import { ErrorNote } from "./ErrorNote"
import { Input } from "./Field"

/** A name that is edited where it stands. */
export function EditableName({ name, onRename, level = 1 }: { name: string; onRename: (name: string) => Promise<unknown>; level?: 1 | 2 }) {
  const { t } = useWords()
  const Heading = `h${level}` as const
  const [draft, setDraft] = useState<string | null>(null)
  const [error, setError] = useState<unknown>(null)
  const save = async (event: FormEvent) => {
    event.preventDefault()
    try {
      if (draft && draft.trim() !== name) await onRename(draft.trim())
      setDraft(null)
      setError(null)
    } catch (problem) {
      setError(problem)
    }
  }
  if (draft === null) {
    return (
      <span className="flex min-w-0 items-center gap-0.5">
        <Heading className={`min-w-0 font-semibold break-words ${level === 1 ? "text-xl" : "text-lg"}`}>{name}</Heading>
        <IconButton label={t("common.rename")} onClick={() => setDraft(name)} className="!size-7">
          <Pencil size={15} aria-hidden />
        </IconButton>
      </span>
    )
  }
  return (
    <form onSubmit={(event) => void save(event)} className="flex min-w-0 flex-wrap items-center gap-2">
      <Input
        autoFocus
        aria-label={t("common.name")}
        className="!w-72 max-w-full"
        maxLength={200}
        required
        value={draft}
        onChange={(event) => setDraft(event.target.value)}
        onKeyDown={(event) => event.key === "Escape" && setDraft(null)}
      />
      <Button look="main" type="submit">
        {t("common.save")}
      </Button>
      <Button look="quiet" onClick={() => setDraft(null)}>
        {t("common.cancel")}
      </Button>
      <ErrorNote error={error} />
    </form>
  )
}
