/** Listings as models, and keys that cannot be files. */
import { describe, expect, it } from "@effect/vitest"
import * as KeyRules from "./KeyRules.ts"
import * as ModelTree from "./ModelTree.ts"
import * as WantedFiles from "./WantedFiles.ts"

const objects = (...keys: ReadonlyArray<string>) => keys.map((key) => ({ key, size: 1, version: "1" }))
const tree = (...keys: ReadonlyArray<string>) => ModelTree.make(objects(...keys), undefined)
const model = (...keys: ReadonlyArray<string>) => {
  const found = tree(...keys).models.get("m")
  if (found === undefined) throw new Error("there is no model m")
  return found
}

describe("a listing", () => {
  it("has a model for each directory, without files beside them and hidden directories", () => {
    const { models, ignored } = tree("a/1/x", "b/2/", "README", ".git/x", "node_modules/y/z", "/", "")
    expect([...models.keys()]).toEqual(["a", "b"])
    expect(ignored).toEqual([])
  })

  it("has the versions of a model, also those without a file", () => {
    const found = model("m/1/model.onnx", "m/3/", "m/02/x", "m/warmup/y", "m/config.pbtxt", "m/4")
    expect(ModelTree.versionsOf(found).toSorted()).toEqual([1, 3])
    expect(WantedFiles.select(found, [3]).toSorted()).toEqual(["02/x", "4", "config.pbtxt", "warmup/y"])
    expect(WantedFiles.configOf(found, "other")).toBe("config.pbtxt")
    expect(WantedFiles.configOf(model("m/configs/other.pbtxt", "m/config.pbtxt"), "other")).toBe("configs/other.pbtxt")
  })

  it("has another stamp after any change but that of compiled Python", () => {
    const stamp = model("m/1/x", "m/y").stamp
    expect(model("m/y", "m/1/x", "m/1/__pycache__/x.pyc").stamp).toBe(stamp)
    expect(model("m/1/x", "m/z").stamp).not.toBe(stamp)
    const other = ModelTree.make([{ key: "m/1/x", size: 1, version: "2" }, ...objects("m/y")], undefined)
    expect(other.models.get("m")?.stamp).not.toBe(stamp)
  })

  it("may be that of a single model", () => {
    const of = (...keys: ReadonlyArray<string>) => [...ModelTree.make(objects(...keys), "one").models.keys()]
    expect(of("model.onnx", "README.md")).toEqual(["one"])
    expect(of("1/model.onnx", "2/model.onnx", "configs/a.pbtxt")).toEqual(["one"])
    expect(of("a/1/model.onnx")).toEqual(["a"])
  })

  it("of a single model has no variants of its file", () => {
    const keys = ["model.onnx", "model.onnx_data", "model_fp16.onnx", "model_fp16.onnx_data", "tokenizer.json"]
    const found = ModelTree.make(objects(...keys), "one").models.get("one")
    if (found === undefined) throw new Error("there is no model")
    expect(WantedFiles.select(found, [])).toEqual(["model.onnx", "model.onnx_data", "tokenizer.json"])
  })
})

describe("a key that cannot be a file", () => {
  const long = "x".repeat(256)
  it.each([
    ["m/../../etc/passwd", "'..' in it is no name"],
    ["m/1/..", "'..' in it is no name"],
    ["m/./x", "'.' in it is no name"],
    ["m//etc/passwd", "a name in it is empty"],
    ["m/a\\..\\b", "it has a backslash or a control character"],
    ["m/a\0b", "it has a backslash or a control character"],
    ["m/a\nb", "it has a backslash or a control character"],
    [`m/${long}`, "a name in it has more than 255 bytes"],
    [`m/${"é".repeat(128)}`, "a name in it has more than 255 bytes"],
    [`m/${"a/".repeat(40)}x`, "it has more than 32 names"],
    [`m/${"abcdefghij/".repeat(100)}`, "it has more than 1024 bytes"],
    ["m/\ud800", "it is not valid Unicode"],
  ])("%j fails its model alone", (key, rule) => {
    const { models } = tree(key, "other/1/x")
    expect(models.get("m")?.problem).toContain(rule)
    expect(models.get("other")?.problem).toBeUndefined()
    expect([...(models.get("m")?.files.keys() ?? [])].some((path) => path.includes(".."))).toBe(false)
  })

  it.each(["../x", "..", "/etc/passwd", "a\0/x", "\\\\host\\share/x"])("%j is of no model", (key) => {
    const { models, ignored } = tree(key, "m/1/x")
    expect([...models.keys()]).toEqual(["m"])
    expect(ignored).toEqual([key])
  })

  it("clashes with another one that differs in case, or is a directory", () => {
    expect(model("m/1/Model.onnx", "m/1/model.onnx").problem).toBe(
      "objects '1/Model.onnx' and '1/model.onnx' differ only in case",
    )
    expect(model("m/A/x", "m/a/y").problem).toBe("objects 'A' and 'a' differ only in case")
    expect(model("m/\u00e9", "m/e\u0301").problem).toContain("differ only in case")
    expect(model("m/1", "m/1/model.onnx").problem).toBe("object '1' is both a file and a directory")
    expect(model("m/x", "m/x").problem).toContain("the listing has it twice")
  })

  it("is one for Windows", () => {
    for (const key of ["a/con", "a/NUL.txt", "a/b:c", "a/b.", "a/b "]) {
      expect(KeyRules.problem(key, true)).toBe("Windows does not allow a name in it")
      expect(KeyRules.problem(key, false)).toBeUndefined()
    }
  })
})

it("a key in a message is short and on one line", () => {
  expect(KeyRules.shown("a\nb\x85")).toBe("'a\\nb?'")
  expect(KeyRules.shown("x".repeat(500))).toHaveLength(203)
})
