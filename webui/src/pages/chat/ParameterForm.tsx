import { useState, type FormEvent } from "react"
import type { SamplingIn } from "~/api/types.gen"
import { useWords } from "~/i18n"
import { Button } from "~/parts/Button"
import { Field, Input, TextArea } from "~/parts/Field"

export interface ChatSettings {
  systemPrompt: string
  params: SamplingIn
}

type NumberName = "temperature" | "top_p" | "top_k" | "max_tokens" | "seed"
const NUMBERS: { name: NumberName; min?: number; max?: number; step: number | "any" }[] = [
  { name: "temperature", min: 0, max: 2, step: "any" },
  { name: "top_p", min: 0, max: 1, step: "any" },
  { name: "top_k", min: 0, max: 1000, step: 1 },
  { name: "max_tokens", min: 1, max: 32768, step: 1 },
  { name: "seed", step: 1 },
]

/** How the model shall answer. An empty field takes the model's own default. */
export function ParameterForm({ settings, onSave }: { settings: ChatSettings; onSave: (settings: ChatSettings) => void }) {
  const { t } = useWords()
  const [systemPrompt, setSystemPrompt] = useState(settings.systemPrompt)
  const [stop, setStop] = useState((settings.params.stop ?? []).join("\n"))
  const [texts, setTexts] = useState<Record<string, string>>(() =>
    Object.fromEntries(NUMBERS.map(({ name }) => [name, String(settings.params[name] ?? "")])),
  )
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const numbers = Object.fromEntries(NUMBERS.map(({ name }) => [name, texts[name] ? Number(texts[name]) : null]))
    const words = stop.split("\n").filter(Boolean)
    onSave({ systemPrompt: systemPrompt.trim(), params: { ...numbers, stop: words.length > 0 ? words : null } })
  }
  return (
    <form onSubmit={submit} className="space-y-4">
      <Field label={t("chat.system_prompt")}>
        {(control) => (
          <TextArea {...control} rows={4} value={systemPrompt} placeholder={t("chat.system_example")} onChange={(event) => setSystemPrompt(event.target.value)} />
        )}
      </Field>
      <div className="grid gap-4 sm:grid-cols-2">
        {NUMBERS.map(({ name, ...bounds }) => (
          <Field key={name} label={t(`chat.${name}`)} hint={t(`chat.${name}_hint`)}>
            {(control) => (
              <Input
                {...control}
                {...bounds}
                type="number"
                className="num"
                placeholder={t("chat.default")}
                value={texts[name] ?? ""}
                onChange={(event) => setTexts({ ...texts, [name]: event.target.value })}
              />
            )}
          </Field>
        ))}
        <Field label={t("chat.stop_words")} hint={t("chat.stop_words_hint")}>
          {(control) => <TextArea {...control} rows={2} value={stop} onChange={(event) => setStop(event.target.value)} />}
        </Field>
      </div>
      <div className="flex justify-end">
        <Button look="main" type="submit">
          {t("common.apply")}
        </Button>
      </div>
    </form>
  )
}
