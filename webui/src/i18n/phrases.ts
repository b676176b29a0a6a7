/** English sentence, `{}` where it varies → the same in another language, with {0}, {1}… for what varied. */
export type Phrases = Record<string, string>

const HOLE = "{}"
const SENTENCE_END = /(?<=[.!?…])\s+(?=\S)/

/** What the hub says is English and stays so for scripts; here its sentences are found again by their shape. */
export class Phrasebook {
  private readonly shapes: [shape: RegExp, words: string][]
  private readonly known = new Map<string, string>()

  constructor(private readonly phrases: Phrases) {
    this.shapes = Object.entries(phrases)
      .filter(([shape]) => shape.includes(HOLE))
      // The more a shape says itself, the better it fits.
      .sort(([a], [b]) => b.replaceAll(HOLE, "").length - a.replaceAll(HOLE, "").length)
      .map(([shape, words]) => [new RegExp(`^${shape.split(HOLE).map(escape).join("([^]+?)")}$`), words])
  }

  /** The whole text, else sentence by sentence; what is not known stays as it is. */
  translate(text: string): string {
    const found = this.known.get(text)
    if (found !== undefined) return found
    const words = this.whole(text) ?? this.bySentence(text)
    this.known.set(text, words)
    return words
  }

  private bySentence(text: string): string {
    const sentences = text.split(SENTENCE_END)
    return sentences.length < 2 ? text : sentences.map((sentence) => this.whole(sentence) ?? sentence).join(" ")
  }

  private whole(text: string): string | undefined {
    if (Object.hasOwn(this.phrases, text)) return this.phrases[text]
    for (const [shape, words] of this.shapes) {
      const match = shape.exec(text)
      if (match) return words.replace(/\{(\d)\}/g, (_, index: string) => this.translate(match[Number(index) + 1] ?? ""))
    }
    return undefined
  }
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
}
