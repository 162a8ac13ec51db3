/**
 * `nereid serve --model-repository` at SIGTERM: what has come by then has its answer, models that are being loaded have
 * their time, and what does not end within --exit-timeout-secs is cut off (C40). Its scripts wait for a second signal,
 * SIGUSR2.
 */
import { Client } from "@nereid/client"
import { Model, Tensor } from "@nereid/core"
import { Effect, Exit, Scope } from "effect"
import { connect } from "node:net"
import { expect, it, onTestFinished } from "vitest"
import { initializer, model, node, value } from "../fixtures/onnx.ts"
import { repository as writeRepository } from "../fixtures/repository.ts"
import { nereid } from "../Program.ts"

const ports = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"]

const repository = async () => {
  const scope = Scope.makeUnsafe()
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return Effect.runPromise(Scope.provide(writeRepository, scope))
}

const tensors = { inputs: { X: Tensor.scalar("FP32") }, outputs: { Y: Tensor.scalar("FP32") } }
class Gated extends Model.Service<Gated>()("gated", { ...tensors, maxBatchSize: 1 }) {}
class Pair extends Model.Service<Pair>()("pair", { ...tensors, maxBatchSize: 1 }) {}
class Numbers extends Model.Service<Numbers>()("numbers", tensors) {}

const io = `input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_FP32 dims: 1 }`
const decoupled = `${io} model_transaction_policy { decoupled: true }`
const gate = `const opened = new Promise((resolve) => process.once("SIGUSR2", resolve))\n`
const execute = `(requests) => requests.map(({ inputs: { X } }) => ({ Y: X }))`
const gated = `${gate}export default { execute: async (requests) => {
  console.log("entered")
  await opened
  return (${execute})(requests)
} }`
const late = `${gate}export default {
  initialize: () => { console.log("late begins"); return opened },
  finalize: () => console.log("late has ended"),
  execute: ${execute},
}`
const step = `ensemble_scheduling { step {
  model_name: "gated" model_version: -1 input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } }`

const serve = async (...args: ReadonlyArray<string>) => {
  const server = nereid("serve", ...ports, ...args)
  // Where a test has failed, nothing else ends it.
  onTestFinished(() => server.signal("SIGKILL"))
  const [http = "", grpc = "", metrics = ""] = await Promise.all(
    ["HTTPService", "GRPCInferenceService", "Metrics Service"].map(
      async (name) => (await server.match(new RegExp(`${name} at .*:(\\d+)`)))[1],
    ),
  )
  const load = async (name: string) =>
    (await fetch(`http://127.0.0.1:${http}/v2/repository/models/${name}/load`, { method: "POST" })).status
  const stream = async (name: string) => {
    const path = `http://127.0.0.1:${http}/v2/models/${name}/generate_stream`
    return (await fetch(path, { method: "POST", body: '{"X":1}' })).text()
  }
  /** Requests that no instance has begun with. */
  const waiting = async (name: string) => {
    const text = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text()
    return Number(new RegExp(`nv_inference_pending_request_count\\{model="${name}".*\\} (\\d+)`).exec(text)?.[1])
  }
  const closed = () => Promise.all([http, grpc].map(refuses))
  return { server, http: `http://127.0.0.1:${http}`, grpc: `grpc://127.0.0.1:${grpc}`, load, stream, waiting, closed }
}

const refuses = (port: string) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(Number(port), "127.0.0.1", () => socket.destroy() && resolve(false))
    socket.on("error", () => resolve(true))
  })

it("requests over both transports, streams, those that wait and those of an ensemble have their answers, and a load its end", async () => {
  const models = await repository()
  models.write("gated/config.pbtxt", `max_batch_size: 1 ${io} instance_group { count: 1 kind: KIND_CPU }`)
  models.write("gated/1/model.js", gated)
  models.write("pair/config.pbtxt", `platform: "ensemble" max_batch_size: 1 ${io} ${step}`)
  models.write("pair/1/.gitkeep", "")
  models.write("numbers/config.pbtxt", `${decoupled} instance_group { count: 2 kind: KIND_CPU }`)
  models.write(
    "numbers/1/model.js",
    `${gate}export default { execute: async function* ({ inputs: { X } }) {
      yield { Y: X }
      console.log("yielded")
      await opened
      yield { Y: X }
    } }`,
  )
  models.write("late/config.pbtxt", `max_batch_size: 1 ${io}`)
  models.write("late/1/model.js", late)
  const explicit = ["--model-control-mode=explicit", "--load-model=pair", "--load-model=numbers"]
  const { server, http, grpc, load, waiting, closed } = await serve(`--model-repository=${models.path}`, ...explicit)
  await using one = await Client.connect(Gated, { url: http })
  await using pair = await Client.connect(Pair, { url: grpc })
  const first = one.infer({ X: 1 })
  await server.match(/entered\n/)
  const second = pair.infer({ X: 2 })
  await expect.poll(() => waiting("gated")).toBe(1)
  await using overHttp = await Client.connect(Numbers, { url: http })
  await using overGrpc = await Client.connect(Numbers, { url: grpc })
  const streams = [overHttp, overGrpc].map((numbers) => Array.fromAsync(numbers.stream({ X: 3 })))
  await server.match(/yielded\n[^]*yielded\n/)
  const loaded = load("late")
  await server.match(/late begins\n/)

  server.signal("SIGTERM")
  await expect.poll(closed).toEqual([true, true])
  server.signal("SIGUSR2")
  expect(await Promise.all([first, second])).toEqual([{ Y: 1 }, { Y: 2 }])
  for (const stream of streams) expect(await stream).toEqual([{ Y: 3 }, { Y: 3 }])
  expect(await loaded).toBe(200)
  expect(await server.ended).toMatchObject({ code: 0, output: expect.stringContaining("late has ended") })
})

it("the ports close at once while a model is loaded because its directory has changed", async () => {
  const models = await repository()
  models.write("gated/config.pbtxt", `max_batch_size: 1 ${io}`)
  models.write("gated/1/model.js", gated)
  const polling = ["--model-control-mode=poll", "--repository-poll-secs=1"]
  const { server, http, closed } = await serve(`--model-repository=${models.path}`, ...polling)
  models.write("late/config.pbtxt", `max_batch_size: 1 ${io}`)
  models.write("late/1/model.js", late)
  await server.match(/late begins\n/)
  await using one = await Client.connect(Gated, { url: http })
  const first = one.infer({ X: 1 })
  await server.match(/entered\n/)
  server.signal("SIGTERM")
  await expect.poll(closed).toEqual([true, true])
  server.signal("SIGUSR2")
  expect(await first).toEqual({ Y: 1 })
  expect(await server.ended).toMatchObject({ code: 0, output: expect.stringContaining("late has ended") })
})

it("a stream that does not end is ended at --exit-timeout-secs, and the exit code is 1", async () => {
  const models = await repository()
  models.write("numbers/config.pbtxt", decoupled)
  models.write(
    "numbers/1/model.js",
    `export default { execute: async function* ({ inputs: { X } }) {
      yield { Y: X }
      console.log("yielded")
      await new Promise(() => {})
    } }`,
  )
  const { server, stream } = await serve(`--model-repository=${models.path}`, "--exit-timeout-secs=1")
  const text = stream("numbers")
  await server.match(/yielded/)
  server.signal("SIGTERM")
  expect(await text).toBe(
    `data: {"model_name":"numbers","model_version":"1","Y":1}\n\n` +
      `data: {"error":"Server is stopping, scheduler for model has stopped accepting new inference requests"}\n\n`,
  )
  const { code, output } = await server.ended
  expect(code).toBe(1)
  expect(output).toContain("still in flight after 1s; stopping without them")
})

it.each([
  ["on the server's thread", "", "await new Promise(() => {})"],
  ["in a worker thread", 'parameters { key: "worker_threads" value { string_value: "true" } }', "for (;;);"],
])("a batch that no caller waits for does not hold a stop up: a script %s", async (_, thread, hang) => {
  const models = await repository()
  models.write("gated/config.pbtxt", `max_batch_size: 1 ${io} instance_group { count: 1 kind: KIND_CPU } ${thread}`)
  models.write(
    "gated/1/model.js",
    `export default {
      initialize: ({ logger }) => logger,
      execute: async ([{ signal }], logger) => {
        signal.addEventListener("abort", () => logger.info("has aborted"))
        logger.info("has entered")
        ${hang}
      },
      finalize: (logger) => logger.info("is finalized"),
    }`,
  )
  const { server, grpc } = await serve(`--model-repository=${models.path}`)
  const client = await Client.connect(Gated, { url: grpc })
  const caller = new AbortController()
  const request = client.infer({ X: 1 }, { signal: caller.signal }).catch(() => "left")
  await server.match(/has entered/)
  caller.abort()
  expect(await request).toBe("left")
  await client.close()
  server.signal("SIGTERM")
  const { code, output } = await server.ended
  expect(code).toBe(0)
  expect(output).toContain("Model 'gated' stops without a batch that did not end after an interruption")
  const [, stopped] = /Stopped in (\d+) ms/.exec(output) ?? []
  expect(Number(stopped)).toBeLessThan(4000)
  if (thread === "") expect(output).toMatch(/has aborted[^]*is finalized/)
})

it("a session that ONNX Runtime is still making does not end in a core dump", async () => {
  const models = await repository()
  models.write("late/1/model.onnx", slowToLoad(1024, 60))
  const explicit = ["--model-control-mode=explicit", "--exit-timeout-secs=1"]
  const { server, http, load } = await serve(`--model-repository=${models.path}`, ...explicit)
  const loaded = load("late").catch(() => "cut off")
  const index = async () => (await fetch(`${http}/v2/repository/index`, { method: "POST" })).json()
  await expect.poll(index).toMatchObject([{ state: "LOADING" }])
  server.signal("SIGTERM")
  const { signal, output } = await server.ended
  // By force where that takes more than the five seconds that there are.
  expect([null, "SIGKILL"]).toContain(signal)
  expect(output).not.toContain("terminate called")
  await loaded
})

/** X FP32["n",1] → Y of the same shape; to be multiplied so many times as the session is made. */
const slowToLoad = (width: number, times: number) => {
  const identity = new Float32Array(width * width)
  for (let index = 0; index < width; index++) identity[index * width + index] = 1
  const names = ["W", ...Array.from({ length: times }, (_, index) => `step${index}`)]
  return model({
    inputs: [value("X", "FP32", ["n", 1])],
    outputs: [value("Y", "FP32", ["n", 1])],
    nodes: [
      ...names.slice(1).map((name, index) => node("MatMul", [names[index] ?? "", "W"], [name])),
      node("ReduceMax", [names.at(-1) ?? ""], ["LARGEST"], { keepdims: 0 }),
      node("Mul", ["X", "LARGEST"], ["Y"]),
    ],
    initializers: [initializer("W", "FP32", [width, width], identity)],
  })
}
