import { Check, Copy } from "lucide-react"
import { useState } from "react"
import { useWords } from "~/i18n"

/** Copies, also on plain HTTP, where browsers offer no clipboard interface. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const area = document.createElement("textarea")
    area.value = text
    area.style.position = "fixed"
    area.style.opacity = "0"
    ;(document.querySelector("[role=dialog]") ?? document.body).append(area)
    area.select()
    const copied = document.execCommand("copy")
    area.remove()
    return copied
  }
}

export function CopyButton({ text, label }: { text: string; label?: string }) {
  const { t } = useWords()
  const [copied, setCopied] = useState(false)
  const copy = async () => {
    if (!(await copyText(text))) return
    setCopied(true)
    setTimeout(() => setCopied(false), 1500)
  }
  const name = copied ? t("common.copied") : (label ?? t("common.copy"))
  const Icon = copied ? Check : Copy
  return (
    <button
      type="button"
      onClick={() => void copy()}
      aria-label={name}
      title={name}
      className="inline-flex size-7 shrink-0 items-center justify-center rounded-md text-muted hover:bg-hover hover:text-ink"
    >
      <Icon size={15} aria-hidden />
      <span aria-live="polite" className="sr-only">
        {copied ? t("common.copied") : ""}
      </span>
    </button>
  )
}

/** A command or a key, whole and ready to be copied. */
export function CopyBox({ text, label }: { text: string; label?: string }) {
  return (
    <div className="flex items-start gap-1 rounded-lg border border-line bg-sunken py-1.5 pr-1.5 pl-3">
      <code className="min-w-0 flex-1 py-1 font-mono text-[13px] break-all whitespace-pre-wrap">{text}</code>
      <CopyButton text={text} {...(label && { label })} />
    </div>
  )
}
