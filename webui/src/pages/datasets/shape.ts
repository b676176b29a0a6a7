import { useCallback } from "react"
import type { DatasetOut, SchemaKind } from "~/api/types.gen"
import { useWords } from "~/i18n"

/** The state that a person acts on: ready, but not usable before its columns are mapped, is a state of its own. */
export function datasetState(dataset: DatasetOut): string {
  return dataset.status === "ready" && dataset.needs_mapping ? "needs_mapping" : dataset.status
}

export function isTrainable(dataset: DatasetOut): boolean {
  return datasetState(dataset) === "ready" && dataset.schema_kind !== "unknown"
}

export function useShape(): (kind: SchemaKind | null) => string {
  const { t } = useWords()
  return useCallback((kind) => (kind === null ? "–" : t(`shape.${kind}`)), [t])
}

/** The fields of the shapes that a mapping may aim at. */
export const SHAPE_FIELDS = {
  prompt_completion: { needed: ["prompt", "completion"], optional: [] },
  messages: { needed: ["messages"], optional: ["tools"] },
  sharegpt: { needed: ["conversations"], optional: ["system", "tools"] },
  alpaca: { needed: ["instruction", "output"], optional: ["input", "system", "history"] },
  text: { needed: ["text"], optional: [] },
  preference: { needed: ["chosen", "rejected"], optional: ["prompt", "system"] },
  kto: { needed: ["prompt", "completion", "label"], optional: ["system"] },
  prompt_only: { needed: ["prompt"], optional: [] },
} as const satisfies Partial<Record<SchemaKind, { needed: readonly string[]; optional: readonly string[] }>>

export type MappableShape = keyof typeof SHAPE_FIELDS

/** Words that a file of conversations may use for its own keys and roles. */
export const TURN_KEYS = ["role_key", "content_key", "system_role", "user_role", "assistant_role"] as const

export function hasTurns(shape: MappableShape): boolean {
  return shape === "messages" || shape === "sharegpt"
}

export function isMappable(kind: string): kind is MappableShape {
  return kind in SHAPE_FIELDS
}
