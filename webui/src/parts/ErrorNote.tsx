import { CircleAlert } from "lucide-react"
import { ApiProblem } from "~/api/http"
import { useWords, type Key, type Translate } from "~/i18n"

const KNOWN_CODES = {
  network: "problem.network",
  rate_limited: "problem.rate_limited",
  unauthenticated: "problem.unauthenticated",
  forbidden: "problem.forbidden",
  not_found: "problem.not_found",
} as const satisfies Record<string, Key>

/** The hub's sentence where it has one, else ours for the code, else the status. */
export function problemText(error: unknown, t: Translate, phrase: (sentence: string) => string): string {
  if (!(error instanceof ApiProblem)) return t("problem.unexpected")
  if (error.detail) return phrase(error.detail)
  const known = KNOWN_CODES[error.code as keyof typeof KNOWN_CODES]
  if (known) return t(known)
  return error.title || t("problem.status", { status: String(error.status) })
}

/** Every message of a refused request, fields that have a place of their own left out. */
export function ErrorNote({ error, except }: { error: unknown; except?: (loc: string) => boolean }) {
  const { t, phrase } = useWords()
  if (!error) return null
  const fields = error instanceof ApiProblem ? error.errors : []
  const said = error instanceof ApiProblem ? error.detail : ""
  const rest = fields.filter(({ loc, msg }) => !except?.(loc.join(".")) && !said.includes(msg))
  return (
    <div role="alert" className="mt-3 flex gap-2 rounded-lg bg-bad-soft px-3 py-2 text-sm text-bad">
      <CircleAlert size={17} className="mt-0.5 shrink-0" aria-hidden />
      <div className="min-w-0">
        <p>{problemText(error, t, phrase)}</p>
        {rest.map(({ loc, msg }, index) => (
          <p key={index}>{loc.length ? `${loc.join(".")}: ${phrase(msg)}` : phrase(msg)}</p>
        ))}
      </div>
    </div>
  )
}
