import type { ButtonHTMLAttributes, ReactNode } from "react"
import { Link, type LinkProps } from "react-router"

type Look = "main" | "plain" | "quiet" | "danger"

const BASE =
  "inline-flex items-center justify-center gap-1.5 rounded-[7px] px-3 min-h-9 text-sm font-medium whitespace-nowrap transition-colors disabled:opacity-55"
const LOOKS: Record<Look, string> = {
  main: "bg-accent text-on-accent hover:bg-accent-strong",
  plain: "border border-line-strong bg-surface hover:bg-hover",
  quiet: "text-muted hover:bg-hover hover:text-ink",
  danger: "border border-bad text-bad bg-surface hover:bg-bad-soft",
}

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: Look
  busy?: boolean
  children: ReactNode
}

export function Button({ look = "plain", busy, className = "", disabled, type = "button", ...rest }: Props) {
  return (
    <button type={type} className={`${BASE} ${LOOKS[look]} ${className}`} disabled={disabled || busy} aria-busy={busy} {...rest} />
  )
}

export function ButtonLink({ look = "plain", className = "", ...rest }: LinkProps & { look?: Look }) {
  return <Link className={`${BASE} ${LOOKS[look]} ${className}`} {...rest} />
}

/** A button that is only an icon; `label` is its name and its tooltip. */
export function IconButton({ label, className = "", ...rest }: Omit<Props, "look" | "busy"> & { label: string }) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      className={`inline-flex size-9 shrink-0 items-center justify-center rounded-[7px] text-muted hover:bg-hover hover:text-ink disabled:opacity-50 ${className}`}
      {...rest}
    />
  )
}
