import { useMutation } from "@tanstack/react-query"
import { useState, type FormEvent } from "react"
import { useNavigate, useSearchParams } from "react-router"
import { problemAt } from "~/api/http"
import { setUp, useSystem } from "~/api/session"
import { useWords } from "~/i18n"
import { Button, ButtonLink } from "~/parts/Button"
import { ErrorNote } from "~/parts/ErrorNote"
import { Field, Input } from "~/parts/Field"
import { Gate } from "./Gate"
import { complaintsOf, focusFirst, SHORTEST_PASSWORD } from "./complaints"

const FIELDS = ["email", "name", "password"]
const RULES = { name: "needed", email: "email", password: "new_password" } as const

export default function SetupPage() {
  const { t } = useWords()
  const navigate = useNavigate()
  const [params] = useSearchParams()
  const token = params.get("token") ?? ""
  const system = useSystem().data
  const [form, setForm] = useState({ name: "", email: "", password: "" })
  const create = useMutation({
    mutationFn: () => setUp({ token, ...form }),
    onSuccess: () => navigate("/", { replace: true }),
  })
  const [isTried, setIsTried] = useState(false)
  const complaints = complaintsOf(form, RULES)
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    setIsTried(true)
    if (Object.keys(complaints).length === 0) create.mutate()
    else focusFirst(event, complaints)
  }
  const problem = (name: keyof typeof form) => {
    const complaint = isTried && complaints[name]
    if (complaint) return t(complaint)
    return problemAt(create.error, name)
  }
  const set = (name: keyof typeof form) => (event: { target: { value: string } }) => setForm({ ...form, [name]: event.target.value })
  if (system && !system.needs_setup) {
    return (
      <Gate title={t("setup.done_title")} text={t("setup.done_text")}>
        <ButtonLink look="main" to="/login" className="mt-4 w-full">
          {t("login.title")}
        </ButtonLink>
      </Gate>
    )
  }
  if (!token) return <Gate title={t("setup.title")} text={t("setup.find_link")}>{null}</Gate>
  return (
    <Gate title={t("setup.title")} text={t("setup.text")}>
      <form noValidate onSubmit={submit} className="mt-4 space-y-4">
        <Field label={t("account.name")} error={problem("name")}>
          {(control) => <Input {...control} name="name" autoComplete="name" required autoFocus value={form.name} onChange={set("name")} />}
        </Field>
        <Field label={t("account.email")} error={problem("email")}>
          {(control) => <Input {...control} name="email" type="email" autoComplete="username" required value={form.email} onChange={set("email")} />}
        </Field>
        <Field label={t("account.password")} hint={t("account.password_hint")} error={problem("password")}>
          {(control) => (
            <Input
              {...control}
              name="password"
              type="password"
              autoComplete="new-password"
              minLength={SHORTEST_PASSWORD}
              required
              value={form.password}
              onChange={set("password")}
            />
          )}
        </Field>
        <ErrorNote error={create.error} except={(loc) => FIELDS.includes(loc)} />
        <Button look="main" type="submit" busy={create.isPending} className="w-full">
          {t("setup.create")}
        </Button>
      </form>
    </Gate>
  )
}
