/**
 * `nereid serve --trace-config`: traces of scripts that call models, and of ensembles of them, as files and as spans,
 * over both transports. Triton 2.51 gives the same ids, parents, names and attributes.
 */
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import { json } from "node:stream/consumers"
import { Client } from "@nereid/client"
import { Model, Tensor } from "@nereid/core"
import { Effect, Exit, Scope } from "effect"
import { expect, it, onTestFinished } from "vitest"
import { repository as writeRepository } from "../fixtures/repository.ts"
import { nereid } from "../Program.ts"

const io = `max_batch_size: 4
  input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_FP32 dims: 1 }`

const step = (model: string, from: string, to: string) =>
  `step { model_name: "${model}" model_version: -1
    input_map { key: "X" value: "${from}" } output_map { key: "Y" value: "${to}" } }`

const add = `export default {
  execute: (requests) => requests.map(({ inputs: { X } }) => ({
    Y: new X.constructor("FP32", X.shape, new Uint8Array(Float32Array.from(X.data, (x) => x + 1).buffer)),
  })),
}`

const ask = `export default {
  initialize: ({ models }) => models,
  execute: (requests, models) => Promise.all(requests.map(async ({ inputs, run, traceActivity }) => {
    traceActivity("ASK_START")
    const outputs = await run(models.inferBatch("add", inputs))
    traceActivity("ASK_END")
    return outputs
  })),
}`

const repository = async () => {
  const scope = Scope.makeUnsafe()
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const models = await Effect.runPromise(Scope.provide(writeRepository, scope))
  models.write("add/config.pbtxt", io)
  models.write("add/1/model.js", add)
  models.write("ask/config.pbtxt", io)
  models.write("ask/1/model.js", ask)
  const steps = `ensemble_scheduling { ${step("ask", "X", "mid")} ${step("add", "mid", "Y")} }`
  models.write("both/config.pbtxt", `platform: "ensemble" ${io} ${steps}`)
  models.write("both/1/.gitkeep", "")
  return models
}

const tensors = { inputs: { X: Tensor.scalar("FP32") }, outputs: { Y: Tensor.scalar("FP32") }, maxBatchSize: 4 }
class Both extends Model.Service<Both>()("both", tensors) {}

/** Calls the ensemble once over HTTP, and once over gRPC. */
const callTwice = async (...settings: ReadonlyArray<string>) => {
  const models = await repository()
  const flags = ["level=TIMESTAMPS", "rate=1", ...settings].map((setting) => `--trace-config=${setting}`)
  const ports = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"]
  await using server = nereid("serve", `--model-repository=${models.path}`, ...ports, ...flags)
  const [http = "", grpc = ""] = await Promise.all(
    ["HTTPService", "GRPCInferenceService"].map(
      async (name) => (await server.match(new RegExp(`${name} at .*:(\\d+)`)))[1],
    ),
  )
  for (const url of [`http://127.0.0.1:${http}`, `grpc://127.0.0.1:${grpc}`]) {
    await using client = await Client.connect(Both, { url })
    expect(await client.infer({ X: 1 }, { id: "a" })).toEqual({ Y: 3 })
  }
}

it("the trace file has the models of an ensemble and of a script, each with its parent", async () => {
  const models = await repository()
  const file = join(models.path, "trace.json")
  await callTwice(`triton,file=${file}`)
  const elements: ReadonlyArray<{
    readonly id: number
    readonly timestamps?: ReadonlyArray<{ readonly name: string }>
  }> = JSON.parse(readFileSync(file, "utf8"))
  const named = (first: number) => [
    { id: first, model_name: "both", model_version: 1, request_id: "a" },
    { id: first + 1, model_name: "ask", model_version: 1, parent_id: first, request_id: "a" },
    { id: first + 2, model_name: "add", model_version: 1, parent_id: first + 1, request_id: "a" },
    { id: first + 3, model_name: "add", model_version: 1, parent_id: first, request_id: "a" },
  ]
  expect(elements.filter((element) => element.timestamps === undefined)).toEqual([...named(1), ...named(5)])
  const activities = elements.flatMap(({ id, timestamps = [] }) =>
    timestamps.flatMap(({ name }) => (name.startsWith("ASK_") ? [`${id} ${name}`] : [])),
  )
  expect(activities).toEqual(["2 ASK_START", "2 ASK_END", "6 ASK_START", "6 ASK_END"])
})

interface Span {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly startTimeUnixNano: string
  readonly events: ReadonlyArray<{ readonly name: string }>
}

const tree = (spans: ReadonlyArray<Span>, parent?: string): ReadonlyArray<unknown> =>
  spans
    .filter(({ parentSpanId }) => parentSpanId === parent)
    .toSorted((one, other) => Number(BigInt(one.startTimeUnixNano) - BigInt(other.startTimeUnixNano)))
    .map(({ name, spanId }) => [name, ...tree(spans, spanId)])

it("mode=opentelemetry sends the same as spans", async () => {
  const spans: Array<Span> = []
  const collector = createServer(async (request, response) => {
    const { resourceSpans } = (await json(request)) as {
      resourceSpans: ReadonlyArray<{ scopeSpans: ReadonlyArray<{ spans: ReadonlyArray<Span> }> }>
    }
    spans.push(...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)))
    response.end()
  }).listen(0, "127.0.0.1")
  onTestFinished(() => void collector.close())
  await once(collector, "listening")
  const address = collector.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  await callTwice("mode=opentelemetry", `opentelemetry,url=127.0.0.1:${port}/v1/traces`)
  const ensemble = ["both", ["ask", ["compute", ["ASK"]], ["add", ["compute"]]], ["add", ["compute"]]]
  expect(tree(spans)).toEqual([
    ["InferRequest", ensemble],
    ["InferRequest", ensemble],
  ])
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(2)
  const roots = spans.filter(({ name }) => name === "InferRequest").map(({ events }) => events.map(({ name }) => name))
  expect(roots).toEqual([
    ["HTTP_RECV_START", "HTTP_RECV_END", "INFER_RESPONSE_COMPLETE", "HTTP_SEND_START", "HTTP_SEND_END"],
    ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "INFER_RESPONSE_COMPLETE", "GRPC_SEND_START", "GRPC_SEND_END"],
  ])
})
