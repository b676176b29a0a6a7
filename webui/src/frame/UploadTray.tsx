import { useLocation } from "react-router"
import { UploadRow } from "~/pages/datasets/UploadRow"
import { useUploads } from "~/state/uploads"

/** Uploads stay in sight on every page but the one that lists them anyway. */
export function UploadTray() {
  const uploads = useUploads()
  const { pathname } = useLocation()
  if (uploads.length === 0 || pathname === "/datasets") return null
  return (
    <div className="fixed right-4 bottom-4 z-30 w-[calc(100vw-2rem)] max-w-sm space-y-3 rounded-xl border border-line bg-raised p-4 shadow-pop max-sm:bottom-18">
      {uploads.map((upload, index) => (
        <UploadRow key={index} upload={upload} />
      ))}
    </div>
  )
}
