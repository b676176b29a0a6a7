import { Ellipsis } from "lucide-react"
import { NavLink, useNavigate } from "react-router"
import { useWords } from "~/i18n"
import { Menu } from "~/parts/Menu"
import { ENTRIES } from "./navigation"

export function Rail() {
  const { t } = useWords()
  return (
    <nav
      aria-label={t("nav.label")}
      className="sticky top-0 flex h-dvh w-[76px] shrink-0 flex-col gap-1 border-r border-line bg-surface px-2 py-3 max-sm:hidden lg:w-52 lg:px-3"
    >
      <NavLink to="/" className="mb-3 flex items-center gap-2 px-1.5 text-lg font-semibold max-lg:justify-center" aria-label="Parsyn">
        <img src="/favicon.svg" alt="" className="size-7" />
        <span className="max-lg:hidden">Parsyn</span>
      </NavLink>
      {ENTRIES.map(({ to, label, icon: Icon }) => (
        <NavLink
          key={to}
          to={to}
          end={to === "/"}
          className="flex min-h-9 items-center gap-2.5 rounded-[7px] px-2.5 text-sm text-muted hover:bg-hover hover:text-ink aria-[current=page]:bg-accent-soft aria-[current=page]:font-medium aria-[current=page]:text-accent max-lg:flex-col max-lg:justify-center max-lg:gap-0.5 max-lg:px-0 max-lg:py-1.5 max-lg:text-[11px] max-lg:leading-tight"
        >
          <Icon size={18} aria-hidden className="shrink-0" />
          <span className="max-w-full truncate">{t(label)}</span>
        </NavLink>
      ))}
    </nav>
  )
}

export function BottomBar() {
  const { t } = useWords()
  const navigate = useNavigate()
  const rest = ENTRIES.filter((entry) => !entry.onPhone)
  const cell = "flex min-w-0 flex-1 flex-col items-center justify-center gap-0.5 text-[10.5px] tracking-tight text-muted"
  return (
    <nav
      aria-label={t("nav.label")}
      className="fixed inset-x-0 bottom-0 z-30 flex h-14 border-t border-line bg-surface pb-[env(safe-area-inset-bottom)] sm:hidden"
    >
      {ENTRIES.filter((entry) => entry.onPhone).map(({ to, label, icon: Icon }) => (
        <NavLink key={to} to={to} end={to === "/"} className={`${cell} -outline-offset-2 aria-[current=page]:font-medium aria-[current=page]:text-accent`}>
          <Icon size={19} aria-hidden />
          <span className="max-w-full truncate">{t(label)}</span>
        </NavLink>
      ))}
      <Menu
        trigger={
          <button type="button" className={`${cell} -outline-offset-2`}>
            <Ellipsis size={19} aria-hidden />
            {t("nav.more")}
          </button>
        }
        items={rest.map(({ to, label, icon: Icon }) => ({
          label: t(label),
          icon: <Icon size={16} aria-hidden />,
          onSelect: () => void navigate(to),
        }))}
      />
    </nav>
  )
}
