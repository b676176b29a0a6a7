import { X } from "lucide-react"
import { Dialog as Radix } from "radix-ui"
import { useLayoutEffect, useRef, type ReactNode } from "react"
import { useWords } from "~/i18n"

const CONTROLS = ["input", "select", "textarea", "button"].map((name) => `${name}:not(:disabled, [tabindex="-1"])`).join()

interface Props {
  open: boolean
  onClose: () => void
  title: string
  description?: ReactNode
  children?: ReactNode
  footer?: ReactNode
  wide?: boolean
  /** A dialog that must not close by a stray click, e.g. one that shows a key once. */
  sticky?: boolean
}

export function Dialog({ open, onClose, title, description, children, footer, wide, sticky }: Props) {
  const { t } = useWords()
  const opener = useRef<Element | null>(null)
  useLayoutEffect(() => {
    if (open) opener.current = document.activeElement
  }, [open])
  const body = useRef<HTMLDivElement>(null)
  const foot = useRef<HTMLDivElement>(null)
  // The library would begin with the first control of all, which is the cross that closes.
  const goIn = (event: Event) => {
    const first = body.current?.querySelector<HTMLElement>(CONTROLS) ?? foot.current?.querySelector<HTMLElement>(CONTROLS)
    if (!first) return
    event.preventDefault()
    first.focus()
  }
  // The library goes back to a trigger of its own; here what opens a dialog may be anything.
  const goBack = (event: Event) => {
    event.preventDefault()
    if (opener.current instanceof HTMLElement) opener.current.focus()
  }
  return (
    <Radix.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-[#0008]" />
        <Radix.Content
          onOpenAutoFocus={goIn}
          onCloseAutoFocus={goBack}
          onInteractOutside={(event) => sticky && event.preventDefault()}
          {...(!description && { "aria-describedby": undefined })}
          className={`fixed top-[8dvh] left-1/2 z-50 flex max-h-[84dvh] w-[calc(100vw-2rem)] -translate-x-1/2 flex-col rounded-xl border border-line bg-raised shadow-pop ${wide ? "max-w-3xl" : "max-w-lg"}`}
        >
          <div className="flex items-start justify-between gap-3 px-5 pt-4">
            <Radix.Title className="text-lg font-semibold">{title}</Radix.Title>
            <Radix.Close
              aria-label={t("common.close")}
              className="-mr-2 inline-flex size-8 items-center justify-center rounded-md text-muted hover:bg-hover"
            >
              <X size={18} aria-hidden />
            </Radix.Close>
          </div>
          {description && <Radix.Description className="px-5 pt-1 text-sm text-muted">{description}</Radix.Description>}
          <div ref={body} className="min-h-0 flex-1 overflow-y-auto px-5 py-4">{children}</div>
          {footer && <div ref={foot} className="flex flex-wrap justify-end gap-2 border-t border-line px-5 py-3">{footer}</div>}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}
