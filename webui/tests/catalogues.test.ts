import { describe, expect, it } from "vitest"
import { catalogue as english } from "~/i18n/en"
import { catalogue as french } from "~/i18n/fr"
import type { Message } from "~/i18n/message"

const texts = (message: Message) => (typeof message === "string" ? [message] : Object.values(message))

describe("catalogues", () => {
  it("hold the same keys", () => {
    expect(Object.keys(french).sort()).toEqual(Object.keys(english).sort())
  })

  it("have no empty message and the same kind of message in both languages", () => {
    for (const [key, message] of Object.entries(english)) {
      const other = french[key as keyof typeof french]
      expect([...texts(message), ...texts(other)].every((text) => text.trim() !== ""), key).toBe(true)
      expect(typeof other, key).toBe(typeof message)
    }
  })

  it("are French where they must be: no ordinary space before double punctuation, no straight quotes around words", () => {
    for (const [key, message] of Object.entries(french)) {
      for (const text of texts(message)) expect(text, key).not.toMatch(/ [:;?!»]|« /)
    }
  })

  it("hold a form for every plural category of French", () => {
    for (const [key, message] of Object.entries(french)) {
      if (typeof message !== "string") expect(message.many, key).toBeDefined()
    }
  })
})
