import { Boxes, Database, LayoutDashboard, MessagesSquare, Play, Server, Settings, type LucideIcon } from "lucide-react"
import type { Key } from "~/i18n"

export interface Entry {
  to: string
  label: Key
  icon: LucideIcon
  /** In the bottom bar of a phone; the rest is behind "more". */
  onPhone?: boolean
}

export const ENTRIES: Entry[] = [
  { to: "/", label: "nav.overview", icon: LayoutDashboard, onPhone: true },
  { to: "/datasets", label: "nav.datasets", icon: Database, onPhone: true },
  { to: "/models", label: "nav.models", icon: Boxes },
  { to: "/training", label: "nav.training", icon: Play, onPhone: true },
  { to: "/workers", label: "nav.workers", icon: Server },
  { to: "/chat", label: "nav.chat", icon: MessagesSquare, onPhone: true },
  { to: "/settings", label: "nav.settings", icon: Settings },
]
