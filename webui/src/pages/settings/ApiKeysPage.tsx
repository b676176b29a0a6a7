import { KeyRound } from "lucide-react"
import { useState } from "react"
import { remove } from "~/api/http"
import { useList, useRefresh } from "~/api/queries"
import type { ApiKeyOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { Confirm } from "~/parts/Confirm"
import { EmptyState } from "~/parts/EmptyState"
import { Loaded, Page } from "~/parts/Page"
import { Ago, Until } from "~/parts/Values"
import { NewKeyDialog } from "./NewKeyDialog"
import { SettingsNav } from "./SettingsNav"

export default function ApiKeysPage() {
  const { t } = useWords()
  const refresh = useRefresh()
  const keys = useList<ApiKeyOut>("/api-keys")
  const [isNew, setIsNew] = useState(false)
  const [doomed, setDoomed] = useState<ApiKeyOut | null>(null)
  const addButton = (
    <Button look="main" onClick={() => setIsNew(true)}>
      {t("keys.add")}
    </Button>
  )
  return (
    <Page title={t("keys.title")} about={t("keys.about")} actions={addButton}>
      <SettingsNav />
      <Loaded query={keys}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState icon={KeyRound} title={t("keys.empty")} text={t("keys.empty_text")} action={addButton} />
          ) : (
            <ul className="card divide-y divide-line">
              {items.map((key) => (
                <KeyRow key={key.id} apiKey={key} onDelete={() => setDoomed(key)} />
              ))}
            </ul>
          )
        }
      </Loaded>
      <NewKeyDialog open={isNew} onClose={() => setIsNew(false)} />
      <Confirm
        open={doomed !== null}
        onClose={() => setDoomed(null)}
        title={t("keys.delete_one", { name: doomed?.name ?? "" })}
        action={t("common.delete")}
        onConfirm={async () => {
          await remove(`/api-keys/${doomed?.id ?? 0}`)
          refresh("api-keys")
        }}
      >
        {t("keys.delete_text")}
      </Confirm>
    </Page>
  )
}

function KeyRow({ apiKey, onDelete }: { apiKey: ApiKeyOut; onDelete: () => void }) {
  const { t } = useWords()
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3 text-sm">
      <div className="min-w-0 flex-1 basis-48">
        <p className="font-medium break-words">{apiKey.name}</p>
        <p className="text-muted">
          <code className="font-mono text-xs">{apiKey.prefix}…</code> · {apiKey.scopes.map((scope) => t(`scope.${scope}`)).join(", ")}
        </p>
      </div>
      <div className="text-right text-muted max-sm:text-left">
        <p>
          {apiKey.last_used_at ? (
            <>
              {t("keys.used")} <Ago time={apiKey.last_used_at} />
            </>
          ) : (
            t("keys.never_used")
          )}
        </p>
        <p>
          {apiKey.expires_at ? `${t("keys.expires")} ` : ""}
          <Until time={apiKey.expires_at} never={t("keys.no_expiry")} />
        </p>
      </div>
      <Button look="quiet" onClick={onDelete}>
        {t("common.delete")}
      </Button>
    </li>
  )
}
