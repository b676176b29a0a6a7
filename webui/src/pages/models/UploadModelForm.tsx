import { FileUp, FolderUp } from "lucide-react"
import { useEffect, useRef, useState, type FormEvent } from "react"
import { useNavigate } from "react-router"
import { post } from "~/api/http"
import { storeFresh } from "~/api/queries"
import type { ModelOut } from "~/api/types.gen"
import { ModelFileUpload } from "~/api/upload"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { ErrorNote } from "~/parts/ErrorNote"
import { Field, Input } from "~/parts/Field"
import { Progress } from "~/parts/Progress"
import { modelFiles, modelName } from "./model_files"

/** Brings a model as the files of its Hugging Face folder; the dialog stays until they are there. */
export function UploadModelForm({ onClose }: { onClose: () => void }) {
  const { t, format } = useWords()
  const navigate = useNavigate()
  const [picked, setPicked] = useState<File[]>([])
  const [name, setName] = useState("")
  const [sent, setSent] = useState<number | null>(null)
  const [error, setError] = useState<unknown>(null)
  const current = useRef<ModelFileUpload | null>(null)
  const isStopped = useRef(false)
  /** Files that are there already, for another try. */
  const stored = useRef(new Map<File, number>())
  const files = modelFiles(picked)
  const size = files.reduce((sum, file) => sum + file.size, 0)
  const isSending = sent !== null
  useEffect(() => {
    if (!isSending) return
    const warn = (event: BeforeUnloadEvent) => event.preventDefault()
    addEventListener("beforeunload", warn)
    return () => removeEventListener("beforeunload", warn)
  }, [isSending])
  useEffect(() => {
    isStopped.current = false
    return () => {
      isStopped.current = true
      // A file that is complete cannot be taken back; the hub lets go of it when it expires.
      if (current.current?.uploadId === null) current.current.cancel().catch(() => undefined)
    }
  }, [])
  const pick = (list: FileList | null) => {
    const chosen = [...(list ?? [])]
    if (chosen.length === 0) return
    setPicked(chosen)
    setError(null)
    setName((known) => known || modelName(chosen))
  }
  /** The id of its upload; null where the dialog was left meanwhile. */
  const send = async (file: File, before: number): Promise<number | null> => {
    const upload = new ModelFileUpload(file)
    current.current = upload
    upload.watch(() => !isStopped.current && setSent(before + upload.sent))
    await upload.run()
    if (isStopped.current) return null
    if (upload.uploadId === null) throw upload.error
    return upload.uploadId
  }
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setError(null)
    setSent(0)
    try {
      const ids: number[] = []
      let before = 0
      for (const file of files) {
        const id = stored.current.get(file) ?? (await send(file, before))
        if (id === null) return
        stored.current.set(file, id)
        ids.push(id)
        before += file.size
        setSent(before)
      }
      const model = await post<ModelOut>("/models", { name: name.trim(), source: "upload", upload_ids: ids })
      storeFresh("models", model)
      await navigate(`/models/${model.id}`)
    } catch (problem) {
      setError(problem)
      setSent(null)
    }
  }
  return (
    <form onSubmit={(event) => void submit(event)} className="space-y-4">
      <div className="flex flex-col items-center gap-2 rounded-lg border-2 border-dashed border-line-strong px-4 py-6 text-center text-sm">
        {files.length > 0 ? (
          <p>
            {t("models.files_picked", { count: files.length })} <span className="num text-muted">{format.bytes(size)}</span>
          </p>
        ) : (
          <p className="text-muted">{t("models.files_hint")}</p>
        )}
        <div className="flex flex-wrap justify-center gap-2">
          <Picker label={t("models.pick_folder")} isFolder disabled={isSending} onPick={pick} />
          <Picker label={t("models.pick_files")} disabled={isSending} onPick={pick} />
        </div>
      </div>
      <Field label={t("common.name")}>
        {(control) => <Input {...control} required maxLength={200} value={name} disabled={isSending} onChange={(event) => setName(event.target.value)} />}
      </Field>
      {sent !== null && (
        <Progress label={name} phase={t("upload.sending")} fraction={size === 0 ? 1 : sent / size} facts={[t("upload.of", { sent: format.bytes(sent), size: format.bytes(size) })]} />
      )}
      <ErrorNote error={error} />
      <div className="flex justify-end gap-2">
        <Button onClick={onClose}>{t("common.cancel")}</Button>
        <Button look="main" type="submit" busy={isSending} disabled={files.length === 0}>
          {t("models.upload")}
        </Button>
      </div>
    </form>
  )
}

function Picker({ label, isFolder, disabled, onPick }: { label: string; isFolder?: boolean; disabled: boolean; onPick: (files: FileList | null) => void }) {
  const input = useRef<HTMLInputElement>(null)
  const Icon = isFolder ? FolderUp : FileUp
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        className="sr-only"
        tabIndex={-1}
        aria-label={label}
        {...(isFolder && { webkitdirectory: "" })}
        onChange={(event) => onPick(event.target.files)}
      />
      <Button disabled={disabled} onClick={() => input.current?.click()}>
        <Icon size={16} aria-hidden /> {label}
      </Button>
    </>
  )
}
