const KEPT = [".json", ".safetensors", ".jinja", ".txt", ".model", ".tiktoken"]
const TEXTS = ["README.md", "LICENSE", "LICENCE", "NOTICE"]
/** What the hub refuses with a sentence, so that nobody wonders where it went. */
const REFUSED = [".bin", ".pt", ".pth", ".pkl", ".ckpt"]

/** The files of a folder of which a model is made; those of inner folders are other things. */
export function modelFiles(files: File[]): File[] {
  const top = files.filter(({ webkitRelativePath }) => webkitRelativePath.split("/").length <= 2)
  const kept = top.filter(({ name }) => KEPT.some((end) => name.endsWith(end)) || TEXTS.some((text) => name.startsWith(text)))
  // Weights that are there in safetensors too need not be refused.
  const hasWeights = kept.some(({ name }) => name.endsWith(".safetensors"))
  return hasWeights ? kept : [...kept, ...top.filter(({ name }) => REFUSED.some((end) => name.endsWith(end)))]
}

/** The folder's name, where one was picked. */
export function modelName(files: File[]): string {
  return files[0]?.webkitRelativePath.split("/")[0] ?? ""
}
