import { useState } from "react"
import { remove } from "~/api/http"
import { useList, useRefresh } from "~/api/queries"
import type { MasterKeyOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { Confirm } from "~/parts/Confirm"
import { Section } from "~/parts/Page"
import { StateBadge, type StateName } from "~/parts/StateBadge"
import { Ago, Until } from "~/parts/Values"

/** The keys with which machines enrol: how often each was used, and until when it may be. */
export function MasterKeys() {
  const { t } = useWords()
  const refresh = useRefresh()
  const keys = useList<MasterKeyOut>("/master-keys").data?.items ?? []
  const [doomed, setDoomed] = useState<MasterKeyOut | null>(null)
  if (keys.length === 0) return null
  return (
    <div className="mt-8">
      <Section title={t("workers.keys")}>
        <ul className="card divide-y divide-line">
          {keys.map((key) => (
            <Line key={key.id} enrolmentKey={key} onRevoke={() => setDoomed(key)} />
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

function Line({ enrolmentKey: key, onRevoke }: { enrolmentKey: MasterKeyOut; onRevoke: () => void }) {
  const { t, format } = useWords()
  const state = stateOf(key)
  return (
    <li className="flex min-h-12 flex-wrap items-center gap-x-4 gap-y-1 px-4 py-1.5 text-sm max-sm:py-2.5">
      <span className="min-w-0 font-medium">{key.name}</span>
      <code className="font-mono text-xs text-muted">{key.prefix}…</code>
      <StateBadge state={state} />
      <span className="num text-muted">
        {key.max_enrollments === null
          ? t("workers.enrolled", { count: key.enrollments })
          : t("workers.enrolled_of", { count: key.enrollments, most: format.number(key.max_enrollments) })}
      </span>
      {state === "active" && (
        <span className="num text-muted">
          {t("workers.expires")} <Until time={key.expires_at} never={t("workers.never_expires")} />
        </span>
      )}
      <span className="ml-auto text-muted">
        <Ago time={key.created_at} />
      </span>
      {state === "active" && (
        <Button look="quiet" onClick={onRevoke}>
          {t("workers.revoke")}
        </Button>
      )}
    </li>
  )
}

/** What the hub would say to a machine that came with it now. */
function stateOf(key: MasterKeyOut): StateName {
  if (key.revoked) return "revoked"
  if (key.expires_at && Date.parse(key.expires_at) <= Date.now()) return "expired"
  if (key.max_enrollments !== null && key.enrollments >= key.max_enrollments) return "used_up"
  return "active"
}
