import { useMutation } from "@tanstack/react-query"
import { useState, type FormEvent } from "react"
import { useNavigate, useSearchParams } from "react-router"
import { ApiProblem } from "~/api/http"
import { login, useSystem } from "~/api/session"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { ErrorNote } from "~/parts/ErrorNote"
import { Field, Input } from "~/parts/Field"
import { Gate } from "./Gate"
import { complaintsOf, focusFirst } from "./complaints"

const RULES = { email: "email", password: "needed" } as const

export default function LoginPage() {
  const { t } = useWords()
  const navigate = useNavigate()
  const [params] = useSearchParams()
  const system = useSystem().data
  const [email, setEmail] = useState("")
  const [password, setPassword] = useState("")
  const enter = useMutation({
    mutationFn: () => login(email, password),
    onSuccess: () => navigate(localPath(params.get("next")), { replace: true }),
  })
  const [isTried, setIsTried] = useState(false)
  const complaints = complaintsOf({ email, password }, RULES)
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    setIsTried(true)
    if (Object.keys(complaints).length === 0) enter.mutate()
    else focusFirst(event, complaints)
  }
  const problem = (name: keyof typeof RULES) => {
    const complaint = isTried && complaints[name]
    return complaint ? t(complaint) : undefined
  }
  if (system?.needs_setup) return <Gate title={t("setup.title")} text={t("setup.find_link")}>{null}</Gate>
  const isWrong = enter.error instanceof ApiProblem && enter.error.status === 401
  return (
    <Gate title={t("login.title")}>
      <form noValidate onSubmit={submit} className="mt-4 space-y-4">
        <Field label={t("account.email")} error={problem("email")}>
          {(control) => (
            <Input {...control} name="email" type="email" autoComplete="username" required autoFocus value={email} onChange={(event) => setEmail(event.target.value)} />
          )}
        </Field>
        <Field label={t("account.password")} error={problem("password") ?? (isWrong ? t("login.wrong") : undefined)}>
          {(control) => (
            <Input
              {...control}
              name="password"
              type="password"
              autoComplete="current-password"
              required
              value={password}
              onChange={(event) => setPassword(event.target.value)}
            />
          )}
        </Field>
        {!isWrong && <ErrorNote error={enter.error} />}
        <Button look="main" type="submit" busy={enter.isPending} className="w-full">
          {t("login.enter")}
        </Button>
      </form>
    </Gate>
  )
}

/** Only a path of this site: "//host" and "https://host" would lead elsewhere. */
function localPath(next: string | null): string {
  return next && /^\/(?![/\\])/.test(next) ? next : "/"
}
