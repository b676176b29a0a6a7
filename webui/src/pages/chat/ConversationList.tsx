import { Trash2 } from "lucide-react"
import { NavLink, useNavigate } from "react-router"
import { client, useList } from "~/api/queries"
import type { ConversationOut } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { IconButton } from "~/parts/Button"
import { Loaded } from "~/parts/Page"
import { Ago } from "~/parts/Values"
import { removeLater, useRemovals } from "~/state/removals"

export function ConversationList({ current }: { current: number | null }) {
  const { t } = useWords()
  const navigate = useNavigate()
  const conversations = useList<ConversationOut>("/conversations")
  const removed = useRemovals()
  const discard = async (one: ConversationOut) => {
    removeLater(`/conversations/${one.id}`, t("chat.deleted", { title: one.title || t("chat.new") }), () => client.invalidateQueries({ queryKey: ["conversations", "list"] }))
    if (one.id === current) await navigate("/chat", { replace: true })
  }
  return (
    <nav aria-label={t("chat.conversations")} className="h-full overflow-y-auto p-2">
      <Loaded query={conversations} rows={5}>
        {({ items }) =>
          items.length === 0 ? (
            <p className="p-4 text-center text-sm text-muted">{t("chat.no_conversations")}</p>
          ) : (
            <ul className="space-y-0.5">
              {items
                .filter(({ id }) => !removed.includes(`/conversations/${id}`))
                .sort((a, b) => b.updated_at.localeCompare(a.updated_at))
                .map((one) => (
                  <li key={one.id} className="group/row relative">
                    <NavLink
                      to={`/chat/${one.id}`}
                      className="block rounded-[7px] py-1.5 pr-9 pl-2.5 text-sm hover:bg-hover aria-[current=page]:bg-accent-soft"
                    >
                      <span className="block truncate">{one.title || t("chat.new")}</span>
                      <span className="text-xs text-muted">
                        <Ago time={one.updated_at} />
                      </span>
                    </NavLink>
                    <IconButton
                      label={t("chat.delete", { title: one.title })}
                      onClick={() => void discard(one)}
                      className="absolute top-1.5 right-1 !size-8 opacity-0 group-focus-within/row:opacity-100 group-hover/row:opacity-100 pointer-coarse:opacity-100"
                    >
                      <Trash2 size={15} aria-hidden />
                    </IconButton>
                  </li>
                ))}
            </ul>
          )
        }
      </Loaded>
    </nav>
  )
}
