/** A message is a sentence with {placeholders}, or one sentence for each plural category that `count` may fall in. */
export type Message = string | { one: string; other: string; many?: string; zero?: string }
export type Catalogue = Record<string, Message>
/** What a translation must provide to stand beside the catalogue C: the same keys, no more and no fewer. */
export type Translation<C extends Catalogue> = { [K in keyof C]: Message }
export type Params = Record<string, string | number>

export function formatMessage(message: Message, params: Params, language: string): string {
  return fill(choose(message, params, language), params, language)
}

function choose(message: Message, params: Params, language: string): string {
  if (typeof message === "string") return message
  const count = Number(params.count ?? 0)
  if (count === 0 && message.zero !== undefined) return message.zero
  const category = new Intl.PluralRules(language).select(count)
  if (category === "one") return message.one
  return category === "many" ? (message.many ?? message.other) : message.other
}

function fill(text: string, params: Params, language: string): string {
  return text.replace(/\{(\w+)\}/g, (hole, name: string) => {
    const value = params[name]
    if (value === undefined) return hole
    return typeof value === "number" ? new Intl.NumberFormat(language).format(value) : value
  })
}
