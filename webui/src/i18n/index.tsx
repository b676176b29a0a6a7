import { createContext, useContext, useEffect, useMemo, useState, type ReactNode } from "react"
import type { catalogue as english } from "./en"
import { Formatter, type Language } from "./format"
import { formatMessage, type Message, type Params } from "./message"
import { Phrasebook, type Phrases } from "./phrases"

export type { Language } from "./format"
export type { Params } from "./message"
export type Key = keyof typeof english
export type Translate = (key: Key, params?: Params) => string
type Loaded = Record<Key, Message>

export const LANGUAGES: Record<Language, string> = { en: "English", fr: "Français" }
const STORED = "parsyn.language"

const LOADERS: Record<Language, () => Promise<{ catalogue: Loaded; phrases: Phrases }>> = {
  en: () => import("./en"),
  fr: () => import("./fr"),
}

interface Words {
  t: Translate
  /** A sentence of the hub in the language that is shown, where we know it; else as the hub said it. */
  phrase: (sentence: string) => string
  format: Formatter
  language: Language
  setLanguage: (language: Language) => void
}

const WordsContext = createContext<Words | null>(null)

/** False where this browser has not been told, and the account's own choice should hold. */
export function isLanguageChosen(): boolean {
  return localStorage.getItem(STORED) !== null
}

export function preferredLanguage(): Language {
  const stored = localStorage.getItem(STORED)
  if (stored === "en" || stored === "fr") return stored
  const known = navigator.languages.map((tag) => tag.slice(0, 2)).find((tag) => tag === "en" || tag === "fr")
  return known === "fr" ? "fr" : "en"
}

/** Loads the one catalogue that is shown; children appear with it, so that no text is ever seen without its words. */
export function WordsProvider({ children }: { children: ReactNode }) {
  const [language, choose] = useState<Language>(preferredLanguage)
  const [loaded, setLoaded] = useState<{ language: Language; catalogue: Loaded; phrases: Phrases } | null>(null)
  useEffect(() => {
    let current = true
    void LOADERS[language]().then(({ catalogue, phrases }) => current && setLoaded({ language, catalogue, phrases }))
    return () => {
      current = false
    }
  }, [language])
  const words = useMemo(() => loaded && makeWords(loaded.language, loaded.catalogue, loaded.phrases, choose), [loaded])
  useEffect(() => {
    if (loaded) document.documentElement.lang = loaded.language
  }, [loaded])
  return words && <WordsContext.Provider value={words}>{children}</WordsContext.Provider>
}

function makeWords(language: Language, catalogue: Loaded, phrases: Phrases, choose: (language: Language) => void): Words {
  const book = new Phrasebook(phrases)
  return {
    t: (key, params = {}) => formatMessage(catalogue[key], params, language),
    phrase: (sentence) => book.translate(sentence),
    format: new Formatter(language),
    language,
    setLanguage: (next) => {
      localStorage.setItem(STORED, next)
      choose(next)
    },
  }
}

export function useWords(): Words {
  const words = useContext(WordsContext)
  if (!words) throw new Error("useWords outside WordsProvider")
  return words
}
