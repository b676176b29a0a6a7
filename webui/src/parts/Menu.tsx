import { Ellipsis } from "lucide-react"
import { DropdownMenu } from "radix-ui"
import type { ReactNode } from "react"
import { useWords } from "~/i18n"

export interface MenuItem {
  label: string
  icon?: ReactNode
  onSelect: () => void
  danger?: boolean
  disabled?: boolean
}

/** The rest of a page's or a row's actions. */
export function Menu({ items, trigger, label }: { items: MenuItem[]; trigger?: ReactNode; label?: string }) {
  const { t } = useWords()
  if (items.length === 0) return null
  return (
    <DropdownMenu.Root>
      <DropdownMenu.Trigger asChild>
        {trigger ?? (
          <button
            type="button"
            aria-label={label ?? t("common.more_actions")}
            title={label ?? t("common.more_actions")}
            className="inline-flex size-9 items-center justify-center rounded-[7px] text-muted hover:bg-hover hover:text-ink"
          >
            <Ellipsis size={18} aria-hidden />
          </button>
        )}
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content align="end" sideOffset={4} className="z-50 min-w-44 rounded-lg border border-line bg-raised p-1 shadow-pop">
          {items.map((item) => (
            <DropdownMenu.Item
              key={item.label}
              disabled={item.disabled ?? false}
              onSelect={item.onSelect}
              className={`flex cursor-pointer items-center gap-2 rounded-md px-2.5 py-1.5 text-sm outline-none data-[disabled]:opacity-50 data-[highlighted]:bg-hover ${item.danger ? "text-bad" : ""}`}
            >
              {item.icon}
              {item.label}
            </DropdownMenu.Item>
          ))}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  )
}
