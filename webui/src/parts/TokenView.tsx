import { useWords } from "~/i18n"

export interface TokenSpan {
  text: string
  id: number | null
  trained: boolean
  special: boolean
}

/** Text cut into tokens: trained ones tinted, masked ones grey, special ones boxed. */
export function TokenView({ tokens }: { tokens: TokenSpan[] }) {
  const { t } = useWords()
  const trained = tokens.filter((token) => token.trained).length
  return (
    <div>
      <p className="num mb-2 text-xs text-muted">{t("tokens.summary", { count: tokens.length, trained })}</p>
      <div className="font-mono text-[13px] leading-6 break-words whitespace-pre-wrap">
        {tokens.map((token, index) => (
          <span
            key={index}
            title={hover(token, t("tokens.id"))}
            className={`rounded-[3px] hover:outline hover:outline-line-strong ${token.trained ? "bg-accent-soft text-ink" : "text-muted"} ${index % 2 && token.trained ? "brightness-95" : ""} ${token.special ? "border border-line-strong px-0.5" : ""}`}
          >
            {token.special && token.text === "\n" ? "⏎" : token.text}
          </span>
        ))}
      </div>
    </div>
  )
}

/** What the colours of a TokenView mean: once, above all of them. */
export function TokenLegend() {
  const { t } = useWords()
  return (
    <p className="mb-3 flex flex-wrap items-center gap-x-4 gap-y-1 text-sm">
      <Sample className="bg-accent-soft text-ink">{t("tokens.trained")}</Sample>
      <Sample className="text-muted">{t("tokens.masked")}</Sample>
      <Sample className="border border-line-strong text-muted">{t("tokens.special")}</Sample>
    </p>
  )
}

function hover(token: TokenSpan, idWord: string): string {
  return token.id === null ? token.text : `${idWord} ${token.id} · ${token.text.length}`
}

function Sample({ className, children }: { className: string; children: string }) {
  return <span className={`rounded-[3px] px-1 ${className}`}>{children}</span>
}
