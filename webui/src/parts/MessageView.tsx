import { Bot, Code, Settings2, User, Wrench, type LucideIcon } from "lucide-react"
import { lazy, Suspense, useState, type ReactNode } from "react"
import { useWords, type Key } from "~/i18n"
import { CopyButton } from "./Copy"
import { IconButton } from "./Button"

const Markdown = lazy(() => import("./Markdown"))

export interface ShownMessage {
  role: string
  content: unknown
  tool_calls?: unknown
}

const ROLES: Record<string, [LucideIcon, Key]> = {
  system: [Settings2, "role.system"],
  user: [User, "role.user"],
  assistant: [Bot, "role.assistant"],
  tool: [Wrench, "role.tool"],
}

interface Props {
  message: ShownMessage
  /** Shown under the text: timings, actions. */
  footer?: ReactNode
  /** Beside the copy button. */
  actions?: ReactNode
  streaming?: boolean
}

/** One message of a conversation: the same in chat, preview and samples. */
export function MessageView({ message, footer, actions, streaming }: Props) {
  const { t } = useWords()
  const [raw, setRaw] = useState(false)
  const [Icon, roleKey] = ROLES[message.role] ?? [Code, null]
  const text = textOf(message.content)
  return (
    <article className="group flex min-w-0 gap-3 py-3" aria-busy={streaming}>
      <span
        className={`mt-0.5 inline-flex size-7 shrink-0 items-center justify-center rounded-full ${message.role === "assistant" ? "bg-accent-soft text-accent" : "bg-sunken text-muted"}`}
      >
        <Icon size={15} aria-hidden />
      </span>
      <div className="min-w-0 flex-1">
        <div className="flex min-h-8 items-center justify-between gap-2">
          <span className="text-sm font-medium">{roleKey ? t(roleKey) : message.role}</span>
          <span className="flex opacity-0 group-focus-within:opacity-100 group-hover:opacity-100 pointer-coarse:opacity-100">
            <IconButton label={t("message.raw")} aria-pressed={raw} onClick={() => setRaw(!raw)} className="!size-7 aria-pressed:text-accent">
              <Code size={15} aria-hidden />
            </IconButton>
            {text && <CopyButton text={text} />}
            {actions}
          </span>
        </div>
        {raw || message.role !== "assistant" ? (
          <div className="break-words whitespace-pre-wrap">{text}</div>
        ) : (
          <Suspense fallback={<div className="break-words whitespace-pre-wrap">{text}</div>}>
            <Markdown text={text} />
          </Suspense>
        )}
        <ToolCalls calls={message.tool_calls} />
        {footer && <div className="mt-1">{footer}</div>}
      </div>
    </article>
  )
}

export function MessageList({ messages }: { messages: ShownMessage[] }) {
  return (
    <div className="divide-y divide-line">
      {messages.map((message, index) => (
        <MessageView key={index} message={message} />
      ))}
    </div>
  )
}

function ToolCalls({ calls }: { calls: unknown }) {
  const { t } = useWords()
  if (!Array.isArray(calls) || calls.length === 0) return null
  return (
    <details className="mt-2 rounded-lg border border-line px-3 py-1.5 text-sm">
      <summary>{t("message.tool_calls", { count: calls.length })}</summary>
      <pre className="mt-1 overflow-x-auto font-mono text-[13px]">{JSON.stringify(calls, null, 2)}</pre>
    </details>
  )
}

/** Content is a text, nothing, or a list of typed parts. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content
  if (content === null || content === undefined) return ""
  if (!Array.isArray(content)) return JSON.stringify(content)
  return content.map((part: unknown) => partText(part)).join("\n")
}

function partText(part: unknown): string {
  if (part && typeof part === "object" && "text" in part) return String(part.text)
  return typeof part === "string" ? part : JSON.stringify(part)
}
