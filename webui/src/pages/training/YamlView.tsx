import { dump, load, YAMLException } from "js-yaml"
import { useState } from "react"
import type { FieldError } from "~/api/http"
import { useWords } from "~/i18n"
import { Field, TextArea } from "~/parts/Field"

interface Props {
  body: Record<string, unknown>
  onChange: (body: Record<string, unknown>) => void
  /** What the hub says against it. */
  errors: FieldError[]
}

/** The same training as text. Reads what is typed as soon as it is whole. */
export default function YamlView({ body, onChange, errors }: Props) {
  const { t, phrase } = useWords()
  const [text, setText] = useState(() => dump(body, { lineWidth: 100, noRefs: true }))
  const [complaint, setComplaint] = useState<string | undefined>(undefined)
  const change = (next: string) => {
    setText(next)
    const read = readYaml(next)
    if ("body" in read) onChange(read.body)
    setComplaint("body" in read ? undefined : read.line === null ? t("yaml.no_mapping") : t("yaml.syntax", { line: read.line }))
  }
  return (
    <>
      <Field label={t("yaml.label")} hint={t("yaml.hint")} error={complaint}>
        {(control) => (
          <TextArea
            {...control}
            rows={Math.min(28, Math.max(12, text.split("\n").length + 2))}
            className="font-mono text-[13px] leading-relaxed"
            spellCheck={false}
            wrap="off"
            value={text}
            onChange={(event) => change(event.target.value)}
          />
        )}
      </Field>
      {complaint === undefined && errors.length > 0 && (
        <div role="alert">
          <ul className="mt-2 space-y-1 text-sm text-bad">
            {errors.map(({ loc, msg }) => (
              <li key={`${loc.join(".")} ${msg}`}>
                {loc.length > 0 && <code className="font-mono text-[13px]">{loc.join(".")}</code>} {phrase(msg)}
              </li>
            ))}
          </ul>
        </div>
      )}
    </>
  )
}

function readYaml(text: string): { body: Record<string, unknown> } | { line: number | null } {
  try {
    const value = load(text) ?? {}
    if (typeof value === "object" && !Array.isArray(value)) return { body: value as Record<string, unknown> }
    return { line: null }
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    return { line: (error.mark?.line ?? 0) + 1 }
  }
}
