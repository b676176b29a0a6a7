import { describe, expect, it } from "vitest"
import { draftsOf, fieldsOf, groupsOf, isChanged, readForm, type JsonSchema } from "~/parts/schema_fields"

const auto = { const: "auto", type: "string" }
const schema: JsonSchema = {
  $defs: { Size: { enum: ["small", "large"], type: "string" } },
  required: ["token"],
  properties: {
    seed: { type: "integer", minimum: 0, default: 42, title: "Seed", group: "Data", advanced: true },
    epochs: { type: "number", exclusiveMinimum: 0, maximum: 1000, default: 3, title: "Epochs", group: "Training", order: 1 },
    batch_size: { anyOf: [auto, { type: "integer", minimum: 1 }], default: "auto", unit: "rows", group: "Training", order: 2 },
    split: { anyOf: [auto, { type: "integer", minimum: 0 }, { type: "number", minimum: 0, exclusiveMaximum: 1 }], default: "auto" },
    size: { $ref: "#/$defs/Size", default: "small" },
    bits: { anyOf: [{ enum: ["4bit", "8bit"], type: "string" }, { type: "null" }], default: null },
    dora: { type: "boolean", default: false },
    packing: { anyOf: [auto, { type: "boolean" }], default: "auto" },
    layers: { anyOf: [{ const: "all-linear", type: "string" }, { items: { type: "string" }, type: "array" }], default: "all-linear" },
    prompts: { anyOf: [{ type: "integer", maximum: 10 }, { items: { type: "string" }, type: "array" }], default: 3 },
    extra: { type: "object", default: {} },
    token: { type: "string" },
  },
}
const fields = fieldsOf(schema)
const field = (name: string) => fields.find((one) => one.name === name)!
const read = (drafts: Record<string, string>) => readForm(fields, { token: "t", ...drafts })

describe("fields of a schema", () => {
  it("recognises every kind", () => {
    const kinds = Object.fromEntries(fields.map(({ name, kind }) => [name, kind]))
    expect(kinds).toEqual({
      seed: "number", epochs: "number", batch_size: "number", split: "number", size: "choice", bits: "choice",
      dora: "switch", packing: "choice", layers: "lines", prompts: "lines", extra: "json", token: "text",
    })
    expect(field("packing").choices).toEqual(["auto", true, false])
    expect(field("bits").nullable).toBe(true)
    expect(field("batch_size").words).toEqual(["auto"])
  })

  it("orders by the schema's marks and groups by first appearance", () => {
    expect(fields[0]!.name).toBe("epochs")
    expect(groupsOf(fields).map(([group]) => group)).toEqual(["Training", "Data", ""])
    expect(field("seed").advanced).toBe(true)
  })
})

describe("reading a form", () => {
  it("sends only what differs from the default", () => {
    expect(read({ epochs: "3", seed: "42", batch_size: "auto" }).config).toEqual({ token: "t" })
    expect(read({ epochs: "2,5", dora: "true", packing: "false", batch_size: "8" }).config).toEqual({
      token: "t", epochs: 2.5, dora: true, packing: false, batch_size: 8,
    })
  })

  it("takes lines, fixed words and numbers where each is allowed", () => {
    expect(read({ layers: "q_proj\n v_proj \n" }).config.layers).toEqual(["q_proj", "v_proj"])
    expect(read({ layers: "all-linear" }).config.layers).toBeUndefined()
    expect(read({ prompts: "5" }).config.prompts).toBe(5)
    expect(read({ prompts: "Why?" }).config.prompts).toEqual(["Why?"])
    expect(read({ extra: '{"a":1}' }).config.extra).toEqual({ a: 1 })
  })

  it("complains in words about what cannot be right", () => {
    const complaint = (name: string, draft: string) => read({ [name]: draft }).complaints[name]
    expect(complaint("epochs", "many")).toEqual({ key: "form.number" })
    expect(complaint("epochs", "0")).toEqual({ key: "form.above", params: { bound: 0 } })
    expect(complaint("epochs", "1001")).toEqual({ key: "form.maximum", params: { bound: 1000 } })
    expect(complaint("batch_size", "big")).toEqual({ key: "form.number_or", params: { words: "auto" } })
    expect(complaint("batch_size", "1.5")).toEqual({ key: "form.integer" })
    expect(complaint("extra", "{")).toEqual({ key: "form.json" })
    expect(readForm(fields, {}).complaints.token).toEqual({ key: "form.required" })
  })

  it("accepts a number that one of several ranges allows", () => {
    expect(read({ split: "0.05" }).config.split).toBe(0.05)
    expect(read({ split: "200" }).config.split).toBe(200)
    expect(read({ split: "1.5" }).complaints.split).toBeDefined()
  })

  it("shows an earlier configuration again", () => {
    const drafts = draftsOf(fields, { epochs: 2, layers: ["q_proj"], seed: 42, unknown: 1 })
    expect(drafts).toEqual({ epochs: "2", layers: "q_proj" })
    expect(isChanged(field("epochs"), drafts.epochs)).toBe(true)
    expect(isChanged(field("seed"), drafts.seed)).toBe(false)
  })
})
