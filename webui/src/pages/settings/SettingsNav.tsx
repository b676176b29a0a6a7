import { NavLink } from "react-router"
import { useWords } from "~/i18n"

export function SettingsNav() {
  const { t } = useWords()
  const link = "border-b-2 border-transparent px-3 py-2 text-sm text-muted hover:text-ink aria-[current=page]:border-accent aria-[current=page]:font-medium aria-[current=page]:text-ink"
  return (
    <nav aria-label={t("nav.settings")} className="mb-6 flex gap-1 border-b border-line">
      <NavLink to="/settings/account" className={link}>
        {t("account.title")}
      </NavLink>
      <NavLink to="/settings/api-keys" className={link}>
        {t("keys.title")}
      </NavLink>
    </nav>
  )
}
