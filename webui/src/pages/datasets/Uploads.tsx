import { useRef, useState } from "react"
import { remove } from "~/api/http"
import { forgetUpload, rememberedUploads, type RememberedUpload } from "~/api/upload_store"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { Section } from "~/parts/Page"
import { startUpload, useUploads } from "~/state/uploads"
import { UploadRow } from "./UploadRow"

/** What is on its way, and what was interrupted and can go on once the file is picked again. */
export function Uploads() {
  const { t } = useWords()
  const uploads = useUploads()
  const [remembered] = useState(rememberedUploads)
  const [dismissed, setDismissed] = useState<number[]>([])
  const names = new Set(uploads.map((upload) => upload.name))
  const stillOpen = new Set(rememberedUploads().map(({ id }) => id))
  const interrupted = remembered.filter(({ id, name }) => stillOpen.has(id) && !names.has(name) && !dismissed.includes(id))
  if (uploads.length === 0 && interrupted.length === 0) return null
  return (
    <Section title={t("upload.title")}>
      <div className="card divide-y divide-line [&>*]:p-4">
        {uploads.map((upload) => (
          <UploadRow key={upload.name + upload.file.name} upload={upload} />
        ))}
        {interrupted.map((upload) => (
          <Interrupted key={upload.id} upload={upload} onDismiss={() => setDismissed([...dismissed, upload.id])} />
        ))}
      </div>
    </Section>
  )
}

function Interrupted({ upload, onDismiss }: { upload: RememberedUpload; onDismiss: () => void }) {
  const { t, format } = useWords()
  const picker = useRef<HTMLInputElement>(null)
  const abandon = () => {
    forgetUpload(upload.id)
    onDismiss()
    // It may have expired already; either way it is gone.
    void remove(`/uploads/${upload.id}`).catch(() => undefined)
  }
  return (
    <div className="flex flex-wrap items-center gap-3">
      <div className="min-w-0 flex-1">
        <p className="truncate text-sm font-medium">{t("upload.interrupted", { name: upload.name })}</p>
        <p className="text-sm text-muted">{t("upload.pick_again", { file: upload.filename, size: format.bytes(upload.size) })}</p>
      </div>
      <input
        ref={picker}
        type="file"
        className="sr-only"
        tabIndex={-1}
        aria-label={t("upload.pick")}
        onChange={(event) => {
          const file = event.target.files?.[0]
          if (file) startUpload(file, upload.name, upload.projectId, upload.id)
        }}
      />
      <Button onClick={() => picker.current?.click()}>{t("upload.pick")}</Button>
      <Button look="quiet" onClick={abandon}>
        {t("upload.abandon")}
      </Button>
    </div>
  )
}
