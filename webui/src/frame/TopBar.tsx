import { CircleUser, Search } from "lucide-react"
import { DropdownMenu } from "radix-ui"
import { useState } from "react"
import { useNavigate } from "react-router"
import { patch } from "~/api/http"
import { logout, useMe } from "~/api/session"
import { LANGUAGES, useWords, type Language } from "~/i18n"
import { LiveDot } from "~/parts/LiveDot"
import { applyTheme, storedTheme, type Theme } from "~/state/theme"

export function TopBar({ onSearch }: { onSearch: () => void }) {
  const { t } = useWords()
  return (
    <header className="sticky top-0 z-20 flex h-14 items-center gap-3 border-b border-line bg-surface px-4 sm:px-6">
      <img src="/favicon.svg" alt="Parsyn" className="size-7 sm:hidden" />
      <button
        type="button"
        onClick={onSearch}
        className="flex h-9 min-w-0 flex-1 items-center gap-2 rounded-[7px] border border-line-strong bg-page px-3 text-sm text-muted hover:bg-hover sm:max-w-xs"
      >
        <Search size={16} aria-hidden className="shrink-0" />
        <span className="truncate">{t("palette.open")}</span>
        <kbd className="ml-auto rounded border border-line px-1.5 font-mono text-xs max-sm:hidden">/</kbd>
      </button>
      <div className="ml-auto flex items-center gap-3">
        <LiveDot />
        <AccountMenu />
      </div>
    </header>
  )
}

const ITEM = "flex cursor-pointer items-center rounded-md px-2.5 py-1.5 text-sm outline-none data-[highlighted]:bg-hover"

function AccountMenu() {
  const { t, language, setLanguage } = useWords()
  const me = useMe().data
  const navigate = useNavigate()
  const [theme, setTheme] = useState<Theme>(storedTheme)
  const pickTheme = (next: Theme) => {
    setTheme(next)
    applyTheme(next)
    void patch("/me", { theme: next })
  }
  const pickLanguage = (next: Language) => {
    setLanguage(next)
    void patch("/me", { language: next })
  }
  return (
    <DropdownMenu.Root>
      <DropdownMenu.Trigger className="flex h-9 items-center gap-2 rounded-[7px] px-1.5 text-sm hover:bg-hover" title={t("account.menu")}>
        <CircleUser size={20} aria-label={t("account.menu")} />
        <span className="max-w-40 truncate max-md:hidden">{me?.name}</span>
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content align="end" sideOffset={6} className="z-50 w-60 rounded-lg border border-line bg-raised p-1 shadow-pop">
          <div className="truncate px-2.5 py-1.5 text-sm text-muted">{me?.email}</div>
          <DropdownMenu.Separator className="my-1 h-px bg-line" />
          <Choices label={t("account.language")} value={language} options={LANGUAGES} onPick={pickLanguage} />
          <DropdownMenu.Separator className="my-1 h-px bg-line" />
          <Choices
            label={t("account.theme")}
            value={theme}
            options={{ system: t("theme.system"), light: t("theme.light"), dark: t("theme.dark") }}
            onPick={pickTheme}
          />
          <DropdownMenu.Separator className="my-1 h-px bg-line" />
          <DropdownMenu.Item className={ITEM} onSelect={() => void navigate("/settings/account")}>
            {t("account.title")}
          </DropdownMenu.Item>
          <DropdownMenu.Item className={ITEM} onSelect={() => void logout()}>
            {t("account.logout")}
          </DropdownMenu.Item>
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  )
}

function Choices<T extends string>(props: { label: string; value: T; options: Record<T, string>; onPick: (value: T) => void }) {
  return (
    <DropdownMenu.RadioGroup value={props.value} onValueChange={(value) => props.onPick(value as T)}>
      <DropdownMenu.Label className="px-2.5 py-1 text-xs text-muted">{props.label}</DropdownMenu.Label>
      {(Object.entries(props.options) as [T, string][]).map(([value, name]) => (
        <DropdownMenu.RadioItem key={value} value={value} className={`${ITEM} pl-7`} onSelect={(event) => event.preventDefault()}>
          <DropdownMenu.ItemIndicator className="-ml-5 w-5">✓</DropdownMenu.ItemIndicator>
          {name}
        </DropdownMenu.RadioItem>
      ))}
    </DropdownMenu.RadioGroup>
  )
}
