import { ChevronRight } from "lucide-react"
import { useEffect, type ReactNode } from "react"
import { Link } from "react-router"
import { useWords } from "~/i18n"
import { ErrorNote } from "./ErrorNote"

interface Props {
  title: string
  /** Stands in the title's place, e.g. a name that can be edited. */
  heading?: ReactNode
  /** Where the page belongs: shown before the title and linked. */
  parent?: { label: string; to: string }
  state?: ReactNode
  about?: ReactNode
  actions?: ReactNode
  /** Tables and charts take the whole width; text stays readable. */
  wide?: boolean
  children: ReactNode
}

export function Page({ title, heading, parent, state, about, actions, wide, children }: Props) {
  useEffect(() => {
    document.title = `${title} · Parsyn`
  }, [title])
  return (
    <div className={`mx-auto w-full px-4 py-5 sm:px-6 ${wide ? "" : "max-w-[1280px]"}`}>
      <header className="mb-5 flex flex-wrap items-start justify-between gap-x-4 gap-y-3">
        <div className="min-w-0">
          {parent && (
            <Link to={parent.to} className="mb-0.5 inline-flex items-center gap-0.5 text-sm text-muted hover:text-ink">
              {parent.label} <ChevronRight size={14} aria-hidden />
            </Link>
          )}
          <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
            {heading ?? <h1 className="min-w-0 text-xl font-semibold break-words">{title}</h1>}
            {state}
          </div>
          {about && <div className="mt-1 text-sm text-muted">{about}</div>}
        </div>
        {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
      </header>
      {children}
    </div>
  )
}

export function Section({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  return (
    <section className="mb-7 min-w-0">
      <div className="mb-2 flex min-h-9 flex-wrap items-center justify-between gap-2">
        <h2 className="font-semibold">{title}</h2>
        {actions}
      </div>
      {children}
    </section>
  )
}

/** What a page shows before its data: its own outline, never a jump. */
export function Skeletons({ rows = 4, height = 44 }: { rows?: number; height?: number }) {
  const { t } = useWords()
  return (
    <div role="status" aria-label={t("common.loading")} className="space-y-2">
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} className="skeleton" style={{ height }} />
      ))}
    </div>
  )
}

interface Loading<T> {
  data: T | undefined
  error: unknown
}

/** Skeleton, then the data, or the reason why not. */
export function Loaded<T>({ query, rows, children }: { query: Loading<T>; rows?: number; children: (data: T) => ReactNode }) {
  if (query.data !== undefined) return <>{children(query.data)}</>
  if (query.error) return <ErrorNote error={query.error} />
  return <Skeletons {...(rows !== undefined && { rows })} />
}
