/** Which starts may use the bundle. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { describe, expect, it, onTestFinished } from "vitest"
import { isPossible } from "./BundleChoice.ts"

const directoryOf = (files: Readonly<Record<string, string>>) => {
  const directory = mkdtempSync(join(tmpdir(), "nereid-bundle-"))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), content)
  }
  return directory
}

const onnx = { "digits/1/model.onnx": "" }

const isPossibleOf = (files: Readonly<Record<string, string>>, ...args: ReadonlyArray<string>) =>
  isPossible(["serve", `--model-repository=${directoryOf(files)}`, ...args], {})

describe("possible", () => {
  it.each([
    ["models in ONNX", onnx],
    [
      "models in Python, and ensembles",
      { "one/1/model.py": "", "two/config.pbtxt": 'platform: "ensemble"', "two/1/x": "" },
    ],
    ["an empty directory", {}],
    ["files beside the models", { ...onnx, "README.md": "", "build.ts": "" }],
  ])("with %s", (_, files) => {
    expect(isPossibleOf(files)).toBe(true)
  })

  it.each([["--http-port=1"], ["--dashboard"], ["--log-verbose=1", "--no-grpc", "--exit-on-error"]])(
    "with the flags %s",
    (...args) => {
      expect(isPossibleOf(onnx, ...args)).toBe(true)
    },
  )

  it("with several directories, and their names behind the flags", () => {
    const args = [onnx, onnx].flatMap((files) => ["--model-repository", directoryOf(files)])
    expect(isPossible(["serve", ...args], { NEREID_HTTP_PORT: "1" })).toBe(true)
  })
})

describe("not possible", () => {
  it.each([
    ["a script", { ...onnx, "script/1/model.ts": "" }],
    ["a script with another name", { "script/1/code.mjs": "" }],
    ["a configuration of a script", { "script/config.pbtxt": 'backend: "nereid"', "script/1/code": "" }],
  ])("with %s", (_, files) => {
    expect(isPossibleOf(files)).toBe(false)
  })

  it.each([
    ["models.ts"],
    ["models"],
    ["--watch", "models"],
    ["--http-port", "1"],
    ["-x"],
    ["--model-control-mode=explicit"],
    ["--model-control=poll"],
    ["--model-config-name=other"],
    ["--repository-poll-secs=1"],
    ["--single-model=digits"],
    ["--model-repo=s3://bucket"],
  ])("with the arguments %s", (...args) => {
    expect(isPossibleOf(onnx, ...args)).toBe(false)
  })

  it("for other commands, absent directories, object storage, and variables of these flags", () => {
    const directory = `--model-repository=${directoryOf(onnx)}`
    expect(isPossible(["serve", directory], { NEREID_MODEL_CONTROL_MODE: "poll" })).toBe(false)
    expect(isPossible(["serve"], {})).toBe(false)
    expect(isPossible(["serve", directory, "--model-repository=s3://bucket/models"], {})).toBe(false)
    expect(isPossible(["serve", "--model-repository=/nowhere"], {})).toBe(false)
    expect(isPossible(["check", directory], {})).toBe(false)
    expect(isPossible([], {})).toBe(false)
  })
})
