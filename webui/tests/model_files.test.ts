import { describe, expect, it } from "vitest"
import { modelFiles, modelName } from "~/pages/models/model_files"

const file = (path: string) => {
  const made = new File(["x"], path.split("/").pop()!)
  Object.defineProperty(made, "webkitRelativePath", { value: path.includes("/") ? path : "" })
  return made
}
const names = (paths: string[]) => modelFiles(paths.map(file)).map(({ name }) => name)

describe("the files of a model", () => {
  it("are those that a model is made of, without inner folders", () => {
    expect(names(["tiny/config.json", "tiny/model.safetensors", "tiny/README.md", "tiny/.gitattributes", "tiny/onnx/model.json"])).toEqual([
      "config.json", "model.safetensors", "README.md",
    ])
  })

  it("leave out old weights beside good ones, and send them where the hub has to say why not", () => {
    expect(names(["config.json", "model.safetensors", "pytorch_model.bin"])).toEqual(["config.json", "model.safetensors"])
    expect(names(["config.json", "pytorch_model.bin"])).toEqual(["config.json", "pytorch_model.bin"])
  })

  it("are called like their folder", () => {
    expect(modelName([file("tiny/config.json")])).toBe("tiny")
    expect(modelName([file("config.json")])).toBe("")
    expect(modelName([])).toBe("")
  })
})
