import { useMutation } from "@tanstack/react-query"
import { useState, type FormEvent } from "react"
import { patch, problemAt, remove } from "~/api/http"
import { useList, useRefresh } from "~/api/queries"
import { useMe } from "~/api/session"
import type { MeOut, SessionOut } from "~/api/types.gen"
import { LANGUAGES, useWords, type Language } from "~/i18n"
import { Button } from "~/parts/Button"
import { ErrorNote } from "~/parts/ErrorNote"
import { Field, Input, Segmented } from "~/parts/Field"
import { Loaded, Page, Section } from "~/parts/Page"
import { Ago } from "~/parts/Values"
import { applyTheme, storedTheme, type Theme } from "~/state/theme"
import { complaintsOf, focusFirst, SHORTEST_PASSWORD } from "../account/complaints"
import { SettingsNav } from "./SettingsNav"

export default function AccountPage() {
  const { t } = useWords()
  const me = useMe().data
  return (
    <Page title={t("account.title")}>
      <SettingsNav />
      {me && (
        <div className="max-w-2xl">
          <Profile me={me} />
          <Appearance />
          <Password />
          <Sessions />
        </div>
      )}
    </Page>
  )
}

function Profile({ me }: { me: MeOut }) {
  const { t } = useWords()
  const refresh = useRefresh()
  const [name, setName] = useState(me.name)
  const save = useMutation({ mutationFn: () => patch("/me", { name: name.trim() }), onSuccess: () => refresh("me") })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    save.mutate()
  }
  const problem = problemAt(save.error, "name")
  return (
    <Section title={t("account.profile")}>
      <form onSubmit={submit} className="card space-y-4 p-4">
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label={t("account.name")} error={problem}>
            {(control) => <Input {...control} required maxLength={200} autoComplete="name" value={name} onChange={(event) => setName(event.target.value)} />}
          </Field>
          <Field label={t("account.email")}>{(control) => <Input {...control} disabled value={me.email} />}</Field>
        </div>
        {!problem && <ErrorNote error={save.error} />}
        <Button type="submit" busy={save.isPending} disabled={name.trim() === me.name}>
          {t("common.save")}
        </Button>
      </form>
    </Section>
  )
}

function Appearance() {
  const { t, language, setLanguage } = useWords()
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
    <Section title={t("account.appearance")}>
      <div className="card space-y-3 p-4">
        <div className="flex flex-wrap items-center justify-between gap-2">
          <span className="text-sm font-medium">{t("account.language")}</span>
          <Segmented
            label={t("account.language")}
            value={language}
            onChange={pickLanguage}
            options={(Object.entries(LANGUAGES) as [Language, string][]).map(([value, label]) => ({ value, label }))}
          />
        </div>
        <div className="flex flex-wrap items-center justify-between gap-2">
          <span className="text-sm font-medium">{t("account.theme")}</span>
          <Segmented<Theme>
            label={t("account.theme")}
            value={theme}
            onChange={pickTheme}
            options={[
              { value: "system", label: t("theme.system") },
              { value: "light", label: t("theme.light") },
              { value: "dark", label: t("theme.dark") },
            ]}
          />
        </div>
      </div>
    </Section>
  )
}

const PASSWORD_RULES = { current_password: "needed", new_password: "new_password" } as const

function Password() {
  const { t } = useWords()
  const [current, setCurrent] = useState("")
  const [fresh, setFresh] = useState("")
  const save = useMutation({
    mutationFn: () => patch("/me", { current_password: current, new_password: fresh }),
    onSuccess: () => {
      setCurrent("")
      setFresh("")
      setIsTried(false)
    },
  })
  const [isTried, setIsTried] = useState(false)
  const complaints = complaintsOf({ current_password: current, new_password: fresh }, PASSWORD_RULES)
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    setIsTried(true)
    if (Object.keys(complaints).length === 0) save.mutate()
    else focusFirst(event, complaints)
  }
  const problem = (field: keyof typeof PASSWORD_RULES) => {
    const complaint = isTried && complaints[field]
    if (complaint) return t(complaint)
    return problemAt(save.error, field)
  }
  return (
    <Section title={t("account.change_password")}>
      <form noValidate onSubmit={submit} className="card space-y-4 p-4">
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label={t("account.current_password")} error={problem("current_password")}>
            {(control) => (
              <Input {...control} name="current_password" type="password" required autoComplete="current-password" value={current} onChange={(event) => setCurrent(event.target.value)} />
            )}
          </Field>
          <Field label={t("account.new_password")} hint={t("account.password_hint")} error={problem("new_password")}>
            {(control) => (
              <Input {...control} name="new_password" type="password" required minLength={SHORTEST_PASSWORD} autoComplete="new-password" value={fresh} onChange={(event) => setFresh(event.target.value)} />
            )}
          </Field>
        </div>
        <ErrorNote error={save.error} except={(loc) => loc.endsWith("_password")} />
        {save.isSuccess && (
          <p role="status" className="text-sm text-good">
            {t("account.password_changed")}
          </p>
        )}
        <Button type="submit" busy={save.isPending}>
          {t("account.change_password")}
        </Button>
      </form>
    </Section>
  )
}

function Sessions() {
  const { t } = useWords()
  const refresh = useRefresh()
  const sessions = useList<SessionOut>("/me/sessions")
  const end = useMutation({ mutationFn: (id: number) => remove(`/me/sessions/${id}`), onSuccess: () => refresh("me", "sessions") })
  return (
    <Section title={t("account.sessions")}>
      <ErrorNote error={end.error} />
      <Loaded query={sessions} rows={2}>
        {({ items }) => (
          <ul className="card divide-y divide-line">
            {items.map((session) => (
              <li key={session.id} className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3 text-sm">
                <div className="min-w-0 flex-1 basis-60">
                  <p className="truncate" title={session.user_agent}>
                    {browserOf(session.user_agent)}
                    {session.current && <span className="ml-2 text-good">{t("account.this_session")}</span>}
                  </p>
                  <p className="text-muted">
                    {session.ip} · <Ago time={session.last_used_at} />
                  </p>
                </div>
                {!session.current && (
                  <Button look="quiet" busy={end.isPending} onClick={() => end.mutate(session.id)}>
                    {t("account.end_session")}
                  </Button>
                )}
              </li>
            ))}
          </ul>
        )}
      </Loaded>
    </Section>
  )
}

/** "Firefox · Linux": enough to tell one's sessions apart. */
function browserOf(agent: string): string {
  const browser = /(Firefox|Edg|OPR|Chrome|Safari)\/\d+/.exec(agent)?.[1]
  const system = /(Windows|Mac OS X|Android|iPhone|Linux)/.exec(agent)?.[1]
  return [browser === "Edg" ? "Edge" : browser === "OPR" ? "Opera" : browser, system].filter(Boolean).join(" · ") || agent || "–"
}
