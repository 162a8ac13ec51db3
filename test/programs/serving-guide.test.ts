/** The programs of the guide on serving, as they stand there: only the ports are exchanged for free ones. */
import { execFileSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Client } from "@nereid/client"
import { afterAll, beforeAll, expect, it } from "vitest"
import { model, node, value } from "../fixtures/onnx.ts"
import { Guide } from "../Guide.ts"
import { freePort, hasCurl, nereid, Program, root, shell } from "../Program.ts"

const path = "docs/guides/serving.md"
const guide = new Guide(path)
afterAll(() => guide[Symbol.dispose]())

/** By the port that the guide has. */
const ports = new Map<string, number>()
const withPorts = (text: string) => text.replaceAll(/\b(8000|8001|8002|9000)\b/g, (port) => String(ports.get(port)))
const port = (number: number) => ports.get(String(number)) ?? 0
const text = readFileSync(join(root, path), "utf8")
const [serving = "", curl = "", curlDocument = ""] = [...text.matchAll(/^(?:nereid serve|curl -s) .*$/gm)].map(
  ([line]) => line,
)

beforeAll(async () => {
  for (const port of ["8000", "8001", "8002", "9000"]) ports.set(port, await freePort())
  for (const name of ["server", "early", "one-port", "routes", "detect"]) {
    const file = guide.file(`${name}.ts`)
    writeFileSync(file, withPorts(readFileSync(file, "utf8")))
  }
  // The guide's reader provides this module.
  writeFileSync(
    guide.file("device.ts"),
    `export const device = { isLost: false, run: ({ PIXELS }: { PIXELS: { data: Float32Array } }) => {
      device.isLost = PIXELS.data[0] === 0
      return { FOUND: PIXELS as never }
    } }`,
  )
  writeFileSync(
    guide.file("bert.onnx"),
    model({
      inputs: [value("input_ids", "INT64", ["batch", "sequence"])],
      outputs: [value("logits", "FP32", ["batch", 2])],
      nodes: [
        node("Cast", ["input_ids"], ["ids"], { to: 1 }),
        node("ReduceMax", ["ids"], ["largest"], { axes: [1], keepdims: 1 }),
        node("Concat", ["largest", "largest"], ["logits"], { axis: 1 }),
      ],
    }),
  )
})

/** Programs for the models and layers that the guide mentions without running them. */
beforeAll(() => {
  writeFileSync(
    guide.file("started.ts"),
    `import { Server } from "@nereid/server"
    import { Layer } from "effect"
    import { Manager, ManagerLive, Scale, scaleBy } from "./manager.ts"
    import { Bert, BertLive, Writer, WriterLive } from "./seldom.ts"
    const layers = Layer.mergeAll(ManagerLive, scaleBy(2), BertLive, WriterLive)
    const ports = { http: 0, grpc: false, metrics: false } as const
    export const server = await Server.start([Manager, Scale, Bert, Writer], layers, ports)`,
  )
  writeFileSync(
    guide.file("launched.ts"),
    `import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
    import { Layer } from "effect"
    import { ShoutLive, WhisperLive } from "./models.ts"
    import { served as onePort } from "./one-port.ts"
    import { served as withRoutes } from "./routes.ts"
    Layer.merge(onePort, withRoutes).pipe(Layer.provide([ShoutLive, WhisperLive]), Layer.launch, NodeRuntime.runMain)`,
  )
})

it("all of them compile", () => {
  const configuration = guide.file("tsconfig.json")
  writeFileSync(configuration, JSON.stringify({ extends: join(root, "tsconfig.json"), include: ["*.ts"] }))
  execFileSync(join(root, "node_modules/.bin/tsc"), ["-p", configuration], { stdio: "inherit" })
}, 60_000)

const ready = async (program: Program, at = 8000): Promise<void> => {
  const failed = program.ended.then(({ output }) => Promise.reject(new Error(output)))
  const response = fetch(`http://localhost:${port(at)}/v2/health/ready`).catch(() => undefined)
  if ((await Promise.race([response, failed]))?.status === 200) return
  await new Promise((resolve) => setImmediate(resolve))
  return ready(program, at)
}

it.each(["server", "early"])("%s.ts serves until SIGTERM, and ends with 0", async (name) => {
  const { Shout, Whisper } = await import(guide.file("models.ts"))
  const program = new Program([guide.file(`${name}.ts`)])
  await ready(program)
  await using shout = await Client.connect(Shout, { url: `http://localhost:${port(8000)}`, verify: true })
  await using whisper = await Client.connect(Whisper, { url: `grpc://localhost:${port(8001)}`, verify: true })
  expect(await shout.infer({ TEXT: "Hello" })).toEqual({ LOUD: "HELLO" })
  expect(await whisper.infer({ TEXT: "Hello" })).toEqual({ QUIET: "hello" })
  program.signal("SIGTERM")
  expect(await program.ended).toMatchObject({ code: 0 })
})

it("the command serves them", async () => {
  const args = withPorts(serving.replace(/ #.*/, "")).split(" ").slice(1)
  await using server = nereid(...args.map((arg) => (arg === "models.ts" ? guide.file(arg) : arg)))
  await server.match(new RegExp(`Metrics Service at .*:${port(8002)}`))
  await ready(server)
})

it("background.ts loads, replaces and unloads, and ends by itself", async () => {
  expect(await new Program([guide.file("background.ts")]).ended).toMatchObject({ code: 0, output: "" })
})

it("manager.ts and seldom.ts: a handler replaces a model; models are loaded with their first request", async () => {
  const { server } = await import(guide.file("started.ts"))
  const infer = async (name: string, input: object, parameters = {}) => {
    const url = `http://localhost:${server.http.port}/v2/models/${name}/infer`
    const response = await fetch(url, { method: "POST", body: JSON.stringify({ parameters, inputs: [input] }) })
    return JSON.parse(await response.text()).outputs[0].data
  }
  const x = { name: "x", datatype: "FP32", shape: [1], data: [3] }
  expect(await infer("scale", x)).toEqual([6])
  expect(await infer("manager", { name: "FACTOR", datatype: "FP32", shape: [1], data: [5] })).toEqual([true])
  expect(await infer("scale", x)).toEqual([15])
  expect(await infer("bert", { name: "input_ids", datatype: "INT64", shape: [1, 3], data: [1, 7, 2] })).toEqual([7, 7])
  const prompt = { name: "PROMPT", datatype: "BYTES", shape: [1, 1], data: ["Hello."] }
  expect(await infer("writer", prompt, { adapter: "formal" })).toEqual(["Hello. Yours sincerely"])
  expect(await infer("writer", prompt, { adapter: "casual" })).toEqual(["Hello. See you"])
  await server.stop()
})

it.skipIf(!hasCurl)(
  "one-port.ts and routes.ts: both protocols on one port, and what the guide says that curl answers",
  async () => {
    const { Shout } = await import(guide.file("models.ts"))
    await using program = new Program([guide.file("launched.ts")])
    await Promise.all([ready(program), ready(program, 9000)])
    for (const protocol of ["http", "grpc"]) {
      await using shout = await Client.connect(Shout, { url: `${protocol}://localhost:${port(9000)}` })
      expect(await shout.infer({ TEXT: "Hello" })).toEqual({ LOUD: "HELLO" })
    }
    const [, response] = new RegExp(`^${RegExp.escape(curl)}\\n# (.*)$`, "m").exec(text) ?? []
    expect(await shell(withPorts(curl))).toBe(response)
    expect(JSON.parse(await shell(withPorts(curlDocument.replace(/ #.*/, ""))))).toHaveProperty(["paths", "/shout"])
  },
)

it("detect.ts ends with 1 where its device is lost", async () => {
  const program = new Program([guide.file("detect.ts")])
  await ready(program)
  const body = JSON.stringify({ inputs: [{ name: "PIXELS", datatype: "FP32", shape: [1, 4], data: [0, 0, 0, 0] }] })
  const infer = () => fetch(`http://localhost:${port(8000)}/v2/models/detect/infer`, { method: "POST", body })
  expect((await infer()).status).toBe(200)
  expect(await (await infer()).json()).toMatchObject({ error: expect.stringContaining("the device is lost") })
  expect(await program.ended).toMatchObject({ code: 1 })
})
