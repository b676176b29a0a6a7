import { apiUrl } from "~/api/http"
import { useList } from "~/api/queries"
import type { ModelFileOut, ModelOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { CopyButton } from "~/parts/Copy"
import { Loaded } from "~/parts/Page"
import { Bytes } from "~/parts/Values"

export function Files({ model }: { model: ModelOut }) {
  const { t } = useWords()
  const files = useList<ModelFileOut>(`/models/${model.id}/files`)
  return (
    <Loaded query={files}>
      {({ items }) =>
        items.length === 0 ? (
          <p className="card p-6 text-center text-sm text-muted">{t(model.source === "hub" ? "models.no_files_hub" : "models.no_files")}</p>
        ) : (
          <>
            <FileList files={items} />
            <p className="mt-3 text-sm">
              <a href={apiUrl(`/models/${model.id}/download`)} className="text-accent hover:underline" download>
                {t("models.download_all")}
              </a>
            </p>
          </>
        )
      }
    </Loaded>
  )
}

export function FileList({ files, linkTo }: { files: ModelFileOut[]; linkTo?: (path: string) => string }) {
  return (
    <ul className="card divide-y divide-line text-sm">
      {files.map((file) => (
        <li key={file.path} className="flex items-center gap-3 px-4 py-2">
          {linkTo ? (
            <a href={linkTo(file.path)} download className="min-w-0 flex-1 font-mono text-[13px] break-all text-accent hover:underline">
              {file.path}
            </a>
          ) : (
            <span className="min-w-0 flex-1 font-mono text-[13px] break-all">{file.path}</span>
          )}
          <span className="flex items-center gap-1 text-muted max-sm:hidden" title={file.sha256}>
            <code className="font-mono text-xs">{file.sha256.slice(0, 12)}</code>
            <CopyButton text={file.sha256} />
          </span>
          <Bytes value={file.size} />
        </li>
      ))}
    </ul>
  )
}
