import { useSyncExternalStore } from "react"
import { storeFresh } from "~/api/queries"
import { FileUpload } from "~/api/upload"
import { makeWatchers } from "./watchers"

/** Uploads live here, not in a page, so that they go on when one leaves it. */
let uploads: readonly FileUpload[] = []
let version = 0
const watchers = makeWatchers()

function tell(): void {
  version += 1
  watchers.tell()
}

export function startUpload(file: File, name: string, projectId: number | null, resumeId: number | null = null): FileUpload {
  const upload = new FileUpload(file, name, projectId, resumeId)
  uploads = [...uploads, upload]
  upload.watch(() => {
    if (upload.state === "done" && upload.dataset) storeFresh("datasets", upload.dataset)
    if (upload.state === "done" || upload.state === "cancelled") uploads = uploads.filter((other) => other !== upload)
    tell()
  })
  void upload.run()
  tell()
  return upload
}

export function dismissUpload(upload: FileUpload): void {
  uploads = uploads.filter((other) => other !== upload)
  tell()
}

export function useUploads(): readonly FileUpload[] {
  useSyncExternalStore(watchers.subscribe, () => version)
  return uploads
}

// Leaving the page for good would lose the bytes that are on their way.
addEventListener("beforeunload", (event) => {
  if (uploads.some((upload) => upload.state === "sending")) event.preventDefault()
})
