import { useState } from "react"
import { remove } from "~/api/http"
import { useList, useRefresh } from "~/api/queries"
import type { MasterKeyOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { Confirm } from "~/parts/Confirm"
import { Section } from "~/parts/Page"
import { StateBadge } from "~/parts/StateBadge"
import { Ago } from "~/parts/Values"

/** The keys with which machines may still enrol. */
export function MasterKeys() {
  const { t, format } = useWords()
  const refresh = useRefresh()
  const keys = useList<MasterKeyOut>("/master-keys").data?.items ?? []
  const [doomed, setDoomed] = useState<MasterKeyOut | null>(null)
  if (keys.length === 0) return null
  return (
    <div className="mt-8">
      <Section title={t("workers.keys")}>
        <ul className="card divide-y divide-line">
          {keys.map((key) => (
            <li key={key.id} className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2.5 text-sm">
              <span className="min-w-0 font-medium">{key.name}</span>
              <code className="font-mono text-xs text-muted">{key.prefix}…</code>
              <StateBadge state={key.revoked ? "revoked" : "active"} />
              <span className="num text-muted">
                {key.max_enrollments === null
                  ? t("workers.enrolled", { count: key.enrollments })
                  : t("workers.enrolled_of", { count: key.enrollments, most: format.number(key.max_enrollments) })}
              </span>
              <span className="ml-auto text-muted">
                <Ago time={key.created_at} />
              </span>
              {!key.revoked && (
                <Button look="quiet" onClick={() => setDoomed(key)}>
                  {t("workers.revoke")}
                </Button>
              )}
            </li>
          ))}
        </ul>
      </Section>
      <Confirm
        open={doomed !== null}
        onClose={() => setDoomed(null)}
        title={t("workers.revoke_one", { name: doomed?.name ?? "" })}
        action={t("workers.revoke")}
        onConfirm={async () => {
          await remove(`/master-keys/${doomed?.id ?? 0}`)
          refresh("master-keys")
        }}
      >
        {t("workers.revoke_text", { count: doomed?.enrollments ?? 0 })}
      </Confirm>
    </div>
  )
}
