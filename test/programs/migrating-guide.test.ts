/** The steps of the guide on migrating a repository: the servers of its commands, on the files of its blocks. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { model, node, value } from "../fixtures/onnx.ts"
import { python } from "../fixtures/python.ts"
import { Guide } from "../Guide.ts"
import { hasCurl, nereid, nereidWith, root, shell } from "../Program.ts"

const path = "docs/guides/migrating-a-triton-repository.md"
const text = readFileSync(join(root, path), "utf8")
const guide = new Guide(path)
afterAll(() => guide[Symbol.dispose]())

const models = guide.file("models")
const ports = ["--http-address=127.0.0.1", "--http-port=0", "--grpc-port=0", "--allow-metrics=false"]

beforeAll(() => {
  const bytes = model({
    inputs: [value("x", "FP32", ["batch", 2])],
    outputs: [value("norm", "FP32", ["batch", 1])],
    nodes: [node("ReduceL2", ["x"], ["norm"], { axes: [1], keepdims: 1 })],
  })
  mkdirSync(join(models, "net/1"), { recursive: true })
  writeFileSync(join(models, "net/1/model.onnx"), bytes)
  mkdirSync(join(models, "pipeline/1"))
})

/** The states of the start's table, by model. */
const states = (output: string) =>
  Object.fromEntries([...output.matchAll(/^(\w+) +\S+ +(READY|UNAVAILABLE)/gm)].map(([, name, state]) => [name, state]))

/** The first request of the guide and its response. */
const [, curl = "", answer = ""] = /^(curl -s localhost:8000\S+ \\\n.*)\n# (.*)$/m.exec(text) ?? []

it.skipIf(python === undefined || !hasCurl)("1 and 2: the repository as it is, also with a model.ts", async () => {
  const variables = { NEREID_PYTHON: python }
  const { output } = await nereidWith(variables, "check", `--model-repository=${models}`).ended
  expect(output).toMatch(/\nok +Python +.*scale/)
  await using server = nereidWith(variables, "serve", `--model-repository=${models}`, ...ports)
  const [, port = ""] = await server.match(/HTTPService at [^\s"]*:(\d+)/)
  await server.match(/^pipeline +\S+ +READY/m)
  expect(states(server.output)).toEqual({ net: "READY", scale: "READY", pipeline: "READY" })
  expect(await shell(curl.replace("localhost:8000", `127.0.0.1:${port}`))).toBe(answer)
})

it("1: without Python, all other models are served", async () => {
  const variables = { NEREID_PYTHON: join(models, "no-python") }
  await using server = nereidWith(variables, "serve", `--model-repository=${models}`, "--exit-on-error=false", ...ports)
  await server.match(/HTTPService at/)
  expect(states(server.output)).toEqual({ net: "READY", scale: "UNAVAILABLE", pipeline: "UNAVAILABLE" })
  expect(server.output).toContain(join(models, "no-python"))
})

it.skipIf(!hasCurl)("3 and 4: with that line, all are ready, and answer as the guide says", async () => {
  const [, before = "", after = ""] = /^```diff\n-(.*)\n\+(.*)\n```/m.exec(text) ?? []
  const file = join(models, "scale/config.pbtxt")
  const configuration = readFileSync(file, "utf8")
  expect(configuration).toContain(before)
  writeFileSync(file, configuration.replace(before, after))
  await using server = nereid("serve", `--model-repository=${models}`, ...ports)
  const [, port = ""] = await server.match(/HTTPService at [^\s"]*:(\d+)/)
  await server.match(/^pipeline +\S+ +READY/m)
  expect(states(server.output)).toEqual({ net: "READY", scale: "READY", pipeline: "READY" })
  expect(await shell(curl.replace("localhost:8000", `127.0.0.1:${port}`))).toBe(answer)
  // 1e39 is infinite as FP32.
  const refused = curl.replace("localhost:8000", `127.0.0.1:${port}`).replace("[3,4]", "[3,1e39]")
  expect(await shell(refused)).toContain("not finite")
  const { code, output } = await nereid("generate", models, "-o", guide.file("models.contract.ts")).ended
  expect(`${code} ${output}`).toMatch(/^0/)
  expect(readFileSync(guide.file("models.contract.ts"), "utf8")).toContain(`class Pipeline extends`)
})

it("they compile", () => guide.compile(), 60_000)
