import { X } from "lucide-react"
import { Dialog as Radix } from "radix-ui"
import { useLayoutEffect, useRef, useState, type ReactNode } from "react"
import { useWords } from "~/i18n"

interface Props {
  /** What the sheet is about, for screen readers; `heading` is what is seen. */
  title: string
  heading: ReactNode
  onClose: () => void
  /** Beside the cross: what one does with the thing. */
  actions?: ReactNode
  children: ReactNode
}

/** From this width on the page beside the sheet stays in use. */
const BESIDE = "(min-width: 1024px)"

/** One thing of a list in detail, at the side of the list; on a narrow screen in front of it. */
export function Sheet({ title, heading, onClose, actions, children }: Props) {
  const { t } = useWords()
  const [isBeside] = useState(() => matchMedia(BESIDE).matches)
  const opener = useRef<Element | null>(null)
  useLayoutEffect(() => {
    opener.current = document.activeElement
  }, [])
  const body = useRef<HTMLDivElement>(null)
  // The sheet itself, not its first button: one comes to read.
  const goIn = (event: Event) => {
    event.preventDefault()
    body.current?.focus()
  }
  const goBack = (event: Event) => {
    event.preventDefault()
    if (opener.current instanceof HTMLElement) opener.current.focus()
  }
  return (
    <Radix.Root open modal={!isBeside} onOpenChange={(next) => !next && onClose()}>
      <Radix.Portal>
        {!isBeside && <Radix.Overlay className="fixed inset-0 z-30 bg-[#0008]" />}
        <Radix.Content
          aria-describedby={undefined}
          onOpenAutoFocus={goIn}
          onCloseAutoFocus={goBack}
          onInteractOutside={(event) => event.preventDefault()}
          className="fixed inset-y-0 right-0 z-40 flex w-full flex-col border-l border-line bg-raised shadow-pop outline-none sm:max-w-[40rem]"
        >
          <Radix.Title asChild>
            <span className="sr-only">{title}</span>
          </Radix.Title>
          <div className="flex items-start gap-2 border-b border-line px-5 py-3">
            <div className="min-w-0 flex-1">{heading}</div>
            {actions}
            <Radix.Close
              aria-label={t("common.close")}
              className="-mr-2 inline-flex size-9 shrink-0 items-center justify-center rounded-md text-muted hover:bg-hover"
            >
              <X size={18} aria-hidden />
            </Radix.Close>
          </div>
          <div ref={body} tabIndex={-1} className="min-h-0 flex-1 overflow-y-auto overscroll-contain px-5 py-4 outline-none">{children}</div>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}
