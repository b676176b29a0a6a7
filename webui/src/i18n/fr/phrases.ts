import type { Phrases } from "../phrases"
import { DATA_PHRASES } from "./phrases_data"
import { FOREIGN_PHRASES } from "./phrases_foreign"
import { HUB_PHRASES } from "./phrases_hub"

/** What the hub says, in French. A test holds the first two to what the sources say. */
export const FRENCH_PHRASES: Phrases = { ...HUB_PHRASES, ...DATA_PHRASES, ...FOREIGN_PHRASES }
