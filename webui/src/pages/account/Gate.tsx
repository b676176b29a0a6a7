import type { ReactNode } from "react"
import { LANGUAGES, useWords, type Language } from "~/i18n"

/** The frame of the pages before one is logged in. */
export function Gate({ title, text, children }: { title: string; text?: ReactNode; children: ReactNode }) {
  const { t, language, setLanguage } = useWords()
  return (
    <main className="flex min-h-dvh flex-col items-center justify-center px-4 py-8">
      <div className="w-full max-w-sm">
        <div className="mb-6 flex items-center gap-2.5 text-xl font-semibold">
          <img src="/favicon.svg" alt="" className="size-9" /> Parsyn
        </div>
        <div className="card p-6">
          <h1 className="text-lg font-semibold">{title}</h1>
          {text && <p className="mt-1 text-sm text-muted">{text}</p>}
          {children}
        </div>
        <div className="mt-4 flex justify-center gap-1" role="group" aria-label={t("account.language")}>
          {(Object.entries(LANGUAGES) as [Language, string][]).map(([code, name]) => (
            <button
              key={code}
              type="button"
              lang={code}
              aria-pressed={code === language}
              onClick={() => setLanguage(code)}
              className="rounded-md px-2 py-1 text-sm text-muted hover:text-ink aria-pressed:font-medium aria-pressed:text-ink"
            >
              {name}
            </button>
          ))}
        </div>
      </div>
    </main>
  )
}
