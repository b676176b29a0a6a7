import { FileUp } from "lucide-react"
import { useRef, useState, type DragEvent, type FormEvent } from "react"
import { useMe } from "~/api/session"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { Dialog } from "~/parts/Dialog"
import { Field, Input } from "~/parts/Field"
import { startUpload } from "~/state/uploads"

const ACCEPTED = ".jsonl,.json,.ndjson,.csv,.tsv,.parquet,.txt,.gz,.zst"

export function AddDatasetDialog({ open, onClose }: { open: boolean; onClose: () => void }) {
  const { t, format } = useWords()
  const me = useMe().data
  const picker = useRef<HTMLInputElement>(null)
  const [file, setFile] = useState<File | null>(null)
  const [name, setName] = useState("")
  const [isOver, setIsOver] = useState(false)
  const pick = (picked: File | undefined) => {
    if (!picked) return
    setFile(picked)
    setName((known) => known || picked.name.replace(/(\.(jsonl?|ndjson|csv|tsv|parquet|txt|gz|zst))+$/i, ""))
  }
  const close = () => {
    setFile(null)
    setName("")
    onClose()
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!file) return
    startUpload(file, name.trim() || file.name, me?.project_id ?? null)
    close()
  }
  const drop = (event: DragEvent) => {
    event.preventDefault()
    setIsOver(false)
    pick(event.dataTransfer.files[0])
  }
  return (
    <Dialog open={open} onClose={close} title={t("datasets.add")} description={t("datasets.formats")}>
      <form onSubmit={submit} className="space-y-4">
        <div
          onDragOver={(event) => {
            event.preventDefault()
            setIsOver(true)
          }}
          onDragLeave={() => setIsOver(false)}
          onDrop={drop}
          className={`flex flex-col items-center gap-2 rounded-lg border-2 border-dashed px-4 py-7 text-center text-sm ${isOver ? "border-accent bg-accent-soft" : "border-line-strong"}`}
        >
          <FileUp size={22} aria-hidden className="text-muted" />
          {file ? (
            <span className="max-w-full break-words">
              <b className="font-medium">{file.name}</b> <span className="num text-muted">{format.bytes(file.size)}</span>
            </span>
          ) : (
            <span className="text-muted">{t("datasets.drop")}</span>
          )}
          <input
            ref={picker}
            type="file"
            accept={ACCEPTED}
            className="sr-only"
            tabIndex={-1}
            aria-label={t("datasets.file")}
            onChange={(event) => pick(event.target.files?.[0])}
          />
          <Button onClick={() => picker.current?.click()}>{file ? t("datasets.other_file") : t("datasets.choose_file")}</Button>
        </div>
        <Field label={t("common.name")}>
          {(control) => <Input {...control} value={name} maxLength={200} onChange={(event) => setName(event.target.value)} required />}
        </Field>
        <div className="flex justify-end gap-2">
          <Button onClick={close}>{t("common.cancel")}</Button>
          <Button look="main" type="submit" disabled={!file}>
            {t("datasets.upload")}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
