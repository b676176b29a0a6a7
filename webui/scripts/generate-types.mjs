// Writes src/api/types.gen.ts from the schemas of parsyn.wire; PARSYN_PYTHON names another interpreter than .venv's.
import { execFileSync } from "node:child_process"
import { existsSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { compile } from "json-schema-to-typescript"

const root = fileURLToPath(new URL("../..", import.meta.url))
const target = fileURLToPath(new URL("../src/api/types.gen.ts", import.meta.url))
const local = `${root}.venv/bin/python`
const python = process.env.PARSYN_PYTHON ?? (existsSync(local) ? local : "python3")

function readSchema() {
  const text = execFileSync(python, ["-m", "parsyn.wire.schema"], { cwd: root, encoding: "utf8", maxBuffer: 64e6 })
  return JSON.parse(text)
}

// The compiler makes a named type of every titled property and of every reference with a default; only the models are worth a name.
function simplified(node) {
  if (Array.isArray(node)) return node.map(simplified)
  if (node === null || typeof node !== "object") return node
  if ("$ref" in node) return { $ref: node.$ref }
  if ("prefixItems" in node) return { ...node, items: node.prefixItems.map(simplified), prefixItems: undefined }
  const isNamed = "title" in node && typeof node.title === "string"
  return Object.fromEntries(
    Object.entries(node)
      .filter(([key]) => !(isNamed && key === "title") && key !== "maxItems")
      .map(([key, value]) => [key, simplified(value)]),
  )
}

const schema = simplified(readSchema())
const types = await compile({ ...schema, additionalProperties: false }, "Api", {
  bannerComment: "/* Generated from parsyn.wire by scripts/generate-types.mjs; do not edit. */",
  additionalProperties: false,
  unreachableDefinitions: true,
  strictIndexSignatures: false,
  format: false,
})
const text = types
  .replace(/ \* This interface was referenced by `Api`'s JSON-Schema\n \* via the `definition` "\w+"\.\n/g, "")
  .replace(/\/\*\*\n( \* \n)? \*\/\n/g, "")
writeFileSync(target, text)
