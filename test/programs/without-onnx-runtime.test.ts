/** Commands and programs in a project without onnxruntime-node: only ONNX models fail, with the command to run. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it, onTestFinished } from "vitest"
import { plus, RepositoryFixture } from "../fixtures/repository.ts"
import { command, Program, root } from "../Program.ts"

const withoutRuntime = ["--import", join(root, "test/fixtures/programs/withoutOnnxRuntime.ts")]

const nereid = (...args: ReadonlyArray<string>) => new Program([...withoutRuntime, command, ...args])

const anyPort = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"]

const sentence = /ONNX Runtime is not installed: run ".*npm install onnxruntime-node"/

/** A folder in the repository, whose modules can import the packages. */
const folder = (): RepositoryFixture => {
  const path = mkdtempSync(join(root, "test", ".without-"))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return new RepositoryFixture(path)
}

const shout = `
import { Model, Tensor } from "@nereid/core"
export class Shout extends Model.Service<Shout>()("shout", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { LOUD: Tensor.utf8() },
}) {}
export const ShoutLive = Model.each(Shout, ({ TEXT }) => ({ LOUD: TEXT.toUpperCase() }))
`

const shoutConfig = `
input { name: "TEXT" data_type: TYPE_STRING dims: 1 }
output { name: "LOUD" data_type: TYPE_STRING dims: 1 }
`

const plusOne = `
import { Model, Tensor } from "@nereid/core"
import { Onnx } from "@nereid/onnx"
export class Plus extends Model.Service<Plus>()("plus", {
  inputs: { X: Tensor.FP32(1) },
  outputs: { Y: Tensor.FP32(1) },
  maxBatchSize: 4,
}) {}
export const PlusLive = Onnx.layer(Plus, { file: new URL("plus.onnx", import.meta.url) })
`

const program = `
import { Effect } from "effect"
import { Plus, PlusLive } from "./models.ts"
const error = await Effect.runPromise(Effect.flip(Effect.provide(Effect.flatMap(Plus, () => Effect.void), PlusLive)))
console.log(error._tag, error.message)
`

it("a repository serves its other models; those of ONNX are UNAVAILABLE with the reason", async () => {
  const models = folder()
  models.adding("plus", 1, 1)
  models.write("shout/1/model.ts", shout)
  models.write("shout/config.pbtxt", shoutConfig)
  await using server = nereid("serve", `--model-repository=${models.path}`, "--exit-on-error=false", ...anyPort)
  const [, port] = await server.match(/HTTPService at .*:(\d+)/)
  expect(server.output).toMatch(/^plus +1 +UNAVAILABLE/m)
  expect(server.output).toMatch(new RegExp(`^plus version 1 is UNAVAILABLE: .*${sentence.source}`, "m"))
  const url = `http://127.0.0.1:${port}/v2`
  const inputs = [{ name: "TEXT", shape: [1], datatype: "BYTES", data: ["hello"] }]
  const answer = await fetch(`${url}/models/shout/infer`, { method: "POST", body: JSON.stringify({ inputs }) })
  expect(await answer.json()).toMatchObject({ outputs: [{ data: ["HELLO"] }] })
  const index = await fetch(`${url}/repository/index`, { method: "POST" })
  expect(await index.json()).toContainEqual(
    expect.objectContaining({ name: "plus", state: "UNAVAILABLE", reason: expect.stringMatching(sentence) }),
  )
})

it("a repository that must load all of its models ends with 1 and the reason", async () => {
  const models = folder()
  models.adding("plus", 1, 1)
  const { code, output } = await nereid("serve", `--model-repository=${models.path}`, ...anyPort).ended
  expect(output).toMatch(sentence)
  expect(code).toBe(1)
})

it("a module ends with 1 and one line, a program with an OnnxLoadError", async () => {
  const { path } = folder()
  writeFileSync(join(path, "plus.onnx"), plus(1))
  writeFileSync(join(path, "models.ts"), plusOne)
  writeFileSync(join(path, "program.ts"), program)
  const served = await nereid("serve", join(path, "models.ts"), ...anyPort).ended
  const reason = `cannot load model 'plus' from '${join(path, "plus.onnx")}': ${sentence.source}`
  expect(served.output).toMatch(new RegExp(`^Error: ${reason}.*\n$`))
  expect(served.code).toBe(1)
  const { code, output } = await new Program([...withoutRuntime, join(path, "program.ts")]).ended
  expect(output).toMatch(new RegExp(`^OnnxLoadError ${reason}.*\n$`))
  expect(code).toBe(0)
})

it("generate reads .onnx files, and export writes models in code", async () => {
  const models = folder()
  models.adding("plus", 1, 1)
  models.write("shout/1/model.ts", shout)
  const file = await nereid("generate", join(models.path, "plus/1/model.onnx")).ended
  expect(file).toMatchObject({ code: 0, output: expect.stringContaining("class Plus extends Model.Service") })
  const all = await nereid("generate", models.path, "--model=plus").ended
  expect(all).toMatchObject({ code: 0, output: expect.stringContaining("class Plus extends Model.Service") })
  const exported = await nereid("export", join(models.path, "shout/1/model.ts"), join(models.path, "exported")).ended
  expect(exported).toMatchObject({ code: 0, output: expect.stringContaining("shout/1/model.ts") })
})

it("check passes with a note", async () => {
  const { code, output } = await nereid("check").ended
  expect(output).toMatch(
    /\nnote {5}ONNX Runtime {2}not installed\. Only ONNX models need it: run ".*npm install onnxruntime-node"/,
  )
  expect(output).toMatch(/\nThis machine can run a server\.\n$/)
  expect(code).toBe(0)
})
