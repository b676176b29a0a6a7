import { describe, expect, it } from "vitest"
import { FRENCH_PHRASES } from "~/i18n/fr/phrases"
import { Phrasebook } from "~/i18n/phrases"

const book = new Phrasebook({
  "No worker is online that can {}. {}": "Aucune machine en ligne ne peut {0}. {1}",
  "train": "entraîner",
  "Start one.": "Démarrez-en une.",
  "{} is {}; only {} can do that.": "{0} est {1}\u00a0; seul {2} le permet.",
  "{} has no usable rows.": "{0} n'a pas de ligne utilisable.",
  "{} is paused.": "{0} est en pause.",
})

describe("sentences of the hub", () => {
  it("are found by their shape, and so is what varies in them", () => {
    expect(book.translate("No worker is online that can train. Start one.")).toBe("Aucune machine en ligne ne peut entraîner. Démarrez-en une.")
    expect(book.translate("Support (v2.1?) has no usable rows.")).toBe("Support (v2.1?) n'a pas de ligne utilisable.")
  })

  it("prefer the shape that says more", () => {
    expect(book.translate("a is b; only c can do that.")).toBe("a est b\u00a0; seul c le permet.")
  })

  it("are taken one by one where several stand together", () => {
    expect(book.translate("rig is paused. Something new. Start one.")).toBe("rig est en pause. Something new. Démarrez-en une.")
  })

  it("stay as they are where they are not known", () => {
    expect(book.translate("Something new")).toBe("Something new")
    expect(book.translate("")).toBe("")
  })

  it("use no more holes in French than English has", () => {
    for (const [shape, words] of Object.entries(FRENCH_PHRASES)) {
      const holes = shape.split("{}").length - 1
      for (const [, index] of words.matchAll(/\{(\d)\}/g)) expect(Number(index), shape).toBeLessThan(holes)
    }
  })
})
