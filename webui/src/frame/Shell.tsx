import { useEffect, useState } from "react"
import { Navigate, Outlet, useLocation } from "react-router"
import { onUnauthorised } from "~/api/http"
import { client } from "~/api/queries"
import { useMe } from "~/api/session"
import { dashboard } from "~/api/socket"
import type { MeOut } from "~/api/types.gen"
import { isLanguageChosen, useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { ProblemCard } from "~/parts/ProblemCard"
import { problemText } from "~/parts/ErrorNote"
import { isThemeChosen, showTheme } from "~/state/theme"
import { Notices } from "./Notices"
import { UploadTray } from "./UploadTray"
import { Palette } from "./Palette"
import { BottomBar, Rail } from "./Rail"
import { TopBar } from "./TopBar"
import { useLiveLists } from "./live_lists"

const sessionIsOver = () => void client.setQueryData(["me", {}], null)
onUnauthorised(sessionIsOver)
dashboard.onRefused = sessionIsOver

/** What surrounds every page of someone who is logged in. */
export function Shell() {
  const { t, phrase } = useWords()
  const me = useMe()
  const place = useLocation()
  useAccountTaste(me.data)
  if (me.data) return <Frame projectIds={me.data.projects.map(({ id }) => id)} />
  if (me.data === null) {
    const next = place.pathname + place.search
    return <Navigate to={next === "/" ? "/login" : `/login?next=${encodeURIComponent(next)}`} replace />
  }
  if (!me.error) return null
  return (
    <div className="mx-auto max-w-xl p-6">
      <ProblemCard
        title={t("crash.no_hub")}
        message={problemText(me.error, t, phrase)}
        action={
          <Button look="main" onClick={() => void me.refetch()}>
            {t("common.try_again")}
          </Button>
        }
      />
    </div>
  )
}

/** On a browser where nothing was chosen yet, the account's language and theme hold. */
function useAccountTaste(me: MeOut | null | undefined): void {
  const { setLanguage } = useWords()
  const { language, theme } = me ?? {}
  useEffect(() => {
    if (language && !isLanguageChosen()) setLanguage(language)
    if (theme && !isThemeChosen()) showTheme(theme)
  }, [language, theme, setLanguage])
}

function Frame({ projectIds }: { projectIds: number[] }) {
  const { t } = useWords()
  const [searching, setSearching] = useState(false)
  const place = useLocation()
  useLiveLists(projectIds)
  useEffect(() => dashboard.start(), [])
  useEffect(() => setSearching(false), [place.pathname])
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || isTyping(event.target)) return
      event.preventDefault()
      setSearching(true)
    }
    addEventListener("keydown", onKey)
    return () => removeEventListener("keydown", onKey)
  }, [])
  return (
    <div className="flex min-h-dvh">
      <a href="#main" className="sr-only z-50 bg-raised p-2 focus:not-sr-only focus:absolute">
        {t("nav.skip")}
      </a>
      <Rail />
      <div className="flex min-w-0 flex-1 flex-col">
        <TopBar onSearch={() => setSearching(true)} />
        <main id="main" className="min-w-0 flex-1 max-sm:pb-20">
          <Outlet />
        </main>
      </div>
      <BottomBar />
      <UploadTray />
      <Notices />
      <Palette open={searching} onClose={() => setSearching(false)} />
    </div>
  )
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
}
