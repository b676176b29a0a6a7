// Fails when the form of a bundled trainer, exporter or evaluator says something that has no French words, or no longer says it.
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../..", import.meta.url))
const local = `${root}.venv/bin/python`
const python = process.env.PARSYN_PYTHON ?? (existsSync(local) ? local : "python3")
const LIST_FIELDS = `
import json
from parsyn.plugin.manager import Plugins
plugins = Plugins(())
kinds = (plugins.trainers, plugins.exporters, plugins.evaluators)
bundled = [plugin for kind in kinds for plugin in kind.values() if plugin.__module__.startswith("parsyn_plugins.")]
fields = [field for plugin in bundled for field in plugin.Params.model_json_schema().get("properties", {}).values()]
presets = [{"title": one.title, "description": one.description} for plugin in bundled for one in getattr(plugin, "presets", ())]
print(json.dumps([fields, presets]))
`
const [fields, presets] = JSON.parse(execFileSync(python, ["-c", LIST_FIELDS], { cwd: root, encoding: "utf8" }))
const source = readFileSync(new URL("../src/i18n/fr/fields.ts", import.meta.url), "utf8")

function wordsOf(name) {
  const body = source.slice(source.indexOf(`${name}:`)).split("\n}\n")[0]
  return new Set([...body.matchAll(/^ {2}(?:"((?:[^"\\]|\\.)*)"|(\w+)):/gm)].map(([, quoted, bare]) => quoted ?? bare))
}

const problems = []
const TABLES = [
  ["FRENCH_TITLES", "title", fields],
  ["FRENCH_HELP", "description", fields],
  ["FRENCH_GROUPS", "group", fields],
  ["FRENCH_UNITS", "unit", fields],
  ["FRENCH_PRESET_TITLES", "title", presets],
  ["FRENCH_PRESET_TEXTS", "description", presets],
]
for (const [name, key, all] of TABLES) {
  const known = wordsOf(name)
  const said = new Set(all.map((field) => field[key]).filter(Boolean).map((word) => word.replaceAll('"', '\\"')))
  for (const word of said) if (!known.has(word)) problems.push(`${name}: no French for "${word}"`)
  for (const word of known) if (!said.has(word)) problems.push(`${name}: nothing says "${word}" any more`)
}
for (const problem of problems) console.error(problem)
console.log(`${fields.length} settings, ${problems.length} problems`)
process.exitCode = problems.length > 0 ? 1 : 0
