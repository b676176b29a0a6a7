import { isValidElement, type ReactNode } from "react"
import ReactMarkdown, { type Components } from "react-markdown"
import remarkGfm from "remark-gfm"
import { CopyButton } from "./Copy"

const PARTS: Components = {
  a: ({ children, href }) => (
    <a href={href} target="_blank" rel="noreferrer noopener" className="text-accent underline">
      {children}
    </a>
  ),
  // A picture in a model's answer could call home; its address is shown instead.
  img: ({ alt, src }) => <code className="text-[13px]">{`![${alt ?? ""}](${String(src ?? "")})`}</code>,
  pre: ({ children }) => (
    <div className="relative my-2 rounded-lg border border-line bg-sunken">
      <span className="absolute top-1 right-1">
        <CopyButton text={plainText(children)} />
      </span>
      <pre className="overflow-x-auto px-3 py-2 font-mono text-[13px]">{children}</pre>
    </div>
  ),
  table: ({ children }) => (
    <div className="my-2 overflow-x-auto">
      <table className="border-collapse text-sm [&_td]:border [&_td]:border-line [&_td]:px-2 [&_td]:py-1 [&_th]:border [&_th]:border-line [&_th]:px-2 [&_th]:py-1 [&_th]:text-left">
        {children}
      </table>
    </div>
  ),
}

function plainText(node: ReactNode): string {
  if (typeof node === "string") return node
  if (Array.isArray(node)) return node.map((child: ReactNode) => plainText(child)).join("")
  return isValidElement<{ children?: ReactNode }>(node) ? plainText(node.props.children) : ""
}

export default function Markdown({ text }: { text: string }) {
  return (
    <div className="min-w-0 break-words [&_:not(pre)>code]:rounded [&_:not(pre)>code]:bg-sunken [&_:not(pre)>code]:px-1 [&_:not(pre)>code]:font-mono [&_:not(pre)>code]:text-[13px] [&_blockquote]:border-l-2 [&_blockquote]:border-line-strong [&_blockquote]:pl-3 [&_h1]:font-semibold [&_h2]:font-semibold [&_h3]:font-semibold [&_ol]:list-decimal [&_ol]:pl-5 [&_p]:my-1.5 [&_ul]:list-disc [&_ul]:pl-5">
      <ReactMarkdown remarkPlugins={[remarkGfm]} components={PARTS}>
        {text}
      </ReactMarkdown>
    </div>
  )
}
