// Fails on a message that nothing shows, and on one whose placeholders differ between the languages.
// A missing or misspelt key is a type error already; `t(`state.${name}`)` uses every key with that beginning and end.
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const source = fileURLToPath(new URL("../src", import.meta.url))
const catalogues = (language) => join(source, "i18n", language)

function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return path === catalogues("en") || path === catalogues("fr") ? [] : filesBelow(path)
    return /\.tsx?$/.test(entry.name) && !entry.name.endsWith(".gen.ts") ? [path] : []
  })
}

/** key → the placeholders of its message, all plural forms together. */
function messagesOf(language) {
  const text = readdirSync(catalogues(language))
    .filter((name) => !["index.ts", "fields.ts"].includes(name) && !name.startsWith("phrases"))
    .map((name) => readFileSync(join(catalogues(language), name), "utf8"))
    .join("\n")
  const starts = [...text.matchAll(/^ {2}"([a-z0-9_.]+)":/gm)]
  return new Map(
    starts.map((start, index) => {
      const body = text.slice(start.index, starts[index + 1]?.index)
      return [start[1], [...new Set([...body.matchAll(/\{(\w+)\}/g)].map((hole) => hole[1]))].sort().join(" ")]
    }),
  )
}

const code = filesBelow(source).map((path) => readFileSync(path, "utf8")).join("\n")
const plain = new Set([...code.matchAll(/"([a-z0-9_]+\.[a-z0-9_]+)"/g)].map((match) => match[1]))
const families = [...code.matchAll(/`([a-z0-9_]+\.[a-z0-9_]*)\$\{[^`}]*\}([a-z0-9_]*)`/g)].map((match) => [match[1], match[2]])
const isUsed = (key) => plain.has(key) || families.some(([begin, end]) => key.startsWith(begin) && key.endsWith(end))

const english = messagesOf("en")
const french = messagesOf("fr")
const problems = [
  ...[...english.keys()].filter((key) => !isUsed(key)).map((key) => `${key}: nothing shows this message`),
  ...[...english].filter(([key, holes]) => french.has(key) && french.get(key) !== holes).map(([key]) => `${key}: placeholders differ in French`),
  ...[...english.keys()].filter((key) => !french.has(key)).map((key) => `${key}: missing in French`),
]
for (const problem of problems) console.error(problem)
console.log(`${english.size} messages, ${problems.length} problems`)
process.exitCode = problems.length > 0 ? 1 : 0
