import type { DatasetOut, StatsOut } from "~/api/types.gen"
import type { FormField } from "~/parts/schema_fields"

export interface Plan {
  rows: number | null
  /** Over all epochs. */
  tokens: number | null
  steps: number | null
  effectiveBatch: number
  maxLength: number | null
}

const AUTO_EFFECTIVE_BATCH = 16
const AUTO_SPLIT_FROM = 100
const AUTO_SPLIT = 0.05

/** Arithmetic on what is chosen; "auto" counts with the value that it aims at. Packing makes fewer steps than this. */
export function planOf(
  dataset: DatasetOut | undefined,
  stats: StatsOut | undefined,
  config: Record<string, unknown>,
  fields: FormField[],
): Plan {
  const value = (name: string) => config[name] ?? fields.find((field) => field.name === name)?.fallback
  const number = (name: string) => (typeof value(name) === "number" ? (value(name) as number) : null)
  const all = dataset?.row_count ?? null
  const rows = all === null ? null : all - heldBack(all, value("validation_split"))
  const batch = number("batch_size")
  const accumulation = number("gradient_accumulation_steps")
  const effectiveBatch = accumulation === null ? Math.max(AUTO_EFFECTIVE_BATCH, batch ?? 1) : accumulation * (batch ?? 1)
  const epochs = number("epochs") ?? 1
  const planned = rows === null ? null : Math.ceil(Math.ceil(rows / effectiveBatch) * epochs)
  const limit = number("max_steps")
  return {
    rows,
    tokens: stats?.tokens && all ? Math.round((stats.tokens.total / all) * (rows ?? all) * epochs) : null,
    steps: planned === null ? limit : Math.min(planned, limit ?? Infinity),
    effectiveBatch,
    maxLength: number("max_seq_length"),
  }
}

function heldBack(rows: number, split: unknown): number {
  if (typeof split === "number") return split < 1 ? Math.round(rows * split) : Math.min(split, rows)
  return rows >= AUTO_SPLIT_FROM ? Math.round(rows * AUTO_SPLIT) : 0
}
