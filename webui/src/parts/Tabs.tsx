import { Tabs as Radix } from "radix-ui"
import type { ReactNode } from "react"
import { useUrlState } from "./url_state"

export interface Tab {
  id: string
  label: string
  count?: string | undefined
  content: () => ReactNode
}

/** Tabs that live in the URL, so that a link opens the one that was shared. */
export function Tabs({ tabs, label, initial }: { tabs: Tab[]; label: string; initial?: string }) {
  const [params, change] = useUrlState()
  const wanted = params.get("tab") ?? initial
  const current = tabs.find((tab) => tab.id === wanted) ?? tabs[0]!
  const select = (id: string) => change({ tab: id }, { replace: true })
  return (
    <Radix.Root value={current.id} onValueChange={select}>
      <Radix.List aria-label={label} className="mb-4 flex gap-1 overflow-x-auto border-b border-line">
        {tabs.map((tab) => (
          <Radix.Trigger
            key={tab.id}
            value={tab.id}
            className="-mb-px shrink-0 border-b-2 border-transparent px-3 py-2 text-sm text-muted -outline-offset-2 hover:text-ink data-[state=active]:border-accent data-[state=active]:font-medium data-[state=active]:text-ink"
          >
            {tab.label}
            {tab.count !== undefined && <span className="num ml-1.5 text-xs text-muted">{tab.count}</span>}
          </Radix.Trigger>
        ))}
      </Radix.List>
      <Radix.Content value={current.id}>{current.content()}</Radix.Content>
    </Radix.Root>
  )
}
