/** The OpenTelemetry mode of traces: spans as Triton's, sent to a receiver on a socket. */
import { createServer } from "node:http"
import { once } from "node:events"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { json } from "node:stream/consumers"
import { assert, describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Layer, Logger, Scope } from "effect"
import { create, toBinary } from "@bufbuild/protobuf"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { frame, rawCall, rawSession } from "../grpc/GrpcServer.fixture.ts"
import { Errors, type HandledRequest, Model, Tensor } from "@nereid/core"
import type { OtlpSpan } from "./TraceSpans.ts"
import * as Server from "../Server.ts"

const tensors = { inputs: { X: Tensor.scalar("INT32") }, outputs: { X: Tensor.scalar("INT32") } }

class Inner extends Model.Service<Inner>()("inner", { ...tensors, maxBatchSize: 4 }) {}
class Middle extends Model.Service<Middle>()("middle", { ...tensors, version: 2 }) {}
class Outer extends Model.Service<Outer>()("outer", { ...tensors }) {}

const inner = Model.each(Inner, ({ X }, { traceActivity }) => {
  traceActivity("TOKENIZE_START")
  traceActivity("WORD")
  traceActivity("TOKENIZE_END")
  traceActivity("CHECKED")
  if (X < 0) throw new Errors.InvalidRequest({ message: "negative" })
  return { X: X + 1 }
})

const middle = Model.each(
  Middle,
  Effect.gen(function* () {
    const { infer } = yield* Inner
    return (sample: { readonly X: number }) => infer(sample)
  }),
).pipe(Layer.provideMerge(inner))

const outer = Model.each(
  Outer,
  Effect.gen(function* () {
    const { infer } = yield* Middle
    return async (sample: { readonly X: number }, { run }: { run: HandledRequest["run"] }) => run(infer(sample))
  }),
).pipe(Layer.provideMerge(middle))

interface Received {
  readonly url: string | undefined
  readonly headers: NodeJS.Dict<string | Array<string>>
  readonly resource: Readonly<Record<string, string | undefined>>
  readonly spans: ReadonlyArray<OtlpSpan>
}

interface Body {
  readonly resourceSpans: ReadonlyArray<{
    readonly resource: {
      readonly attributes: ReadonlyArray<{ readonly key: string; readonly value: { stringValue?: string } }>
    }
    readonly scopeSpans: ReadonlyArray<{ readonly spans: ReadonlyArray<OtlpSpan> }>
  }>
}

/** A receiver of OTLP/HTTP, which answers with these statuses, and then with 200. */
const receiver = Effect.fnUntraced(function* (...statuses: ReadonlyArray<number>) {
  const received: Array<Received> = []
  const answers = [...statuses]
  const collector = createServer(async (request, response) => {
    const { resourceSpans } = (await json(request)) as Body
    const [{ resource, scopeSpans } = { resource: { attributes: [] }, scopeSpans: [] }] = resourceSpans
    received.push({
      url: request.url,
      headers: request.headers,
      resource: Object.fromEntries(resource.attributes.map(({ key, value }) => [key, value.stringValue])),
      spans: scopeSpans.flatMap(({ spans }) => spans),
    })
    response.writeHead(answers.shift() ?? 200).end()
  }).listen(0, "127.0.0.1")
  yield* Effect.promise(() => once(collector, "listening"))
  yield* Effect.addFinalizer(() => Effect.sync(() => collector.close()))
  const address = collector.address()
  assert(typeof address === "object" && address !== null)
  return {
    url: `http://127.0.0.1:${address.port}/v1/traces`,
    received,
    spans: () => received.flatMap(({ spans }) => spans),
  }
})

/** Runs the program with a server that has these trace settings, and stops the server. */
const serving = Effect.fnUntraced(function* (
  trace: Server.ServerOptions["trace"],
  program: (call: {
    readonly infer: (model: string, X: number, headers?: Record<string, string>) => Promise<number>
    readonly call: (model: string, headers: Record<string, string>) => Promise<string | undefined>
    readonly settings: (changes?: object) => Promise<unknown>
  }) => Promise<void>,
) {
  const scope = yield* Scope.make()
  const options = {
    http: { host: "127.0.0.1", port: 0 },
    grpc: { host: "127.0.0.1", port: 0 },
    metrics: false,
    ...(trace && { trace }),
  } as const
  const layer = Layer.provide(Server.layer([Inner, Middle, Outer], options), outer)
  const { http, grpc } = yield* Effect.provide(Server.Server, yield* Scope.provide(Layer.build(layer), scope))
  const url = `http://127.0.0.1:${http?.port}/v2`
  const post = (path: string, body: object, headers: Record<string, string> = {}) =>
    fetch(url + path, { method: "POST", body: JSON.stringify(body), headers: { connection: "close", ...headers } })
  const session = yield* rawSession({ authority: `http://127.0.0.1:${grpc?.port}` })
  const { modelInfer } = GRPCInferenceService.method
  yield* Effect.promise(() =>
    program({
      call: async (modelName, headers) => {
        const inputs = [{ name: "X", datatype: "INT32", shape: [1n], contents: { intContents: [5] } }]
        const message = toBinary(modelInfer.input, create(modelInfer.input, { modelName, inputs }))
        const path = `/${GRPCInferenceService.typeName}/ModelInfer`
        const called = rawCall(session, { chunks: [frame(message)], headers: { ":path": path, ...headers } })
        return (await Effect.runPromise(Effect.scoped(called))).status
      },
      infer: async (model, X, headers) => {
        const shape = model === "inner" ? [1, 1] : [1]
        const inputs = [{ name: "X", datatype: "INT32", shape, data: [X] }]
        const response = await post(`/models/${model}/infer`, { id: "7", inputs }, headers)
        await response.arrayBuffer()
        return response.status
      },
      settings: async (changes) =>
        (await (changes === undefined ? fetch(`${url}/trace/setting`) : post("/trace/setting", changes))).json(),
    }),
  )
  yield* Scope.close(scope, Exit.void)
})

const mode = { mode: "opentelemetry", levels: ["TIMESTAMPS"], rate: 1 } as const

/** The spans as a tree of names, the children in the order of their start. */
const tree = (spans: ReadonlyArray<OtlpSpan>, parent?: string): ReadonlyArray<unknown> =>
  spans
    .filter(({ parentSpanId }) => parentSpanId === parent)
    .toSorted((one, other) => Number(BigInt(one.startTimeUnixNano) - BigInt(other.startTimeUnixNano)))
    .map(({ name, spanId }) => [name, ...tree(spans, spanId)])

const events = (spans: ReadonlyArray<OtlpSpan>, name: string) =>
  spans.filter((span) => span.name === name).map(({ events }) => events.map(({ name }) => name))

const attributes = (spans: ReadonlyArray<OtlpSpan>, name: string) =>
  Object.fromEntries(
    spans.find((span) => span.name === name)?.attributes.map(({ key, value }) => [key, Object.values(value)[0]]) ?? [],
  )

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736"
const traceparent = (flags: string) => `00-${traceId}-00f067aa0ba902b7-${flags}`

describe("a trace as spans", () => {
  it.live("has those of the request, of its model and computation, of calls and of named activities", () =>
    Effect.gen(function* () {
      const { url, spans, received } = yield* receiver()
      const openTelemetry = { url, resource: { "deployment.environment": "test" }, headers: { authorization: "a b" } }
      yield* serving({ ...mode, openTelemetry }, async ({ infer }) => {
        expect(await infer("outer", 1)).toBe(200)
      })
      const [middle] = spans().filter(({ name }) => name === "middle")
      expect(tree(spans())).toEqual([
        ["InferRequest", ["outer", ["compute"], ["middle", ["compute"], ["inner", ["compute", ["TOKENIZE"]]]]]],
      ])
      expect(events(spans(), "InferRequest")).toEqual([
        ["HTTP_RECV_START", "HTTP_RECV_END", "INFER_RESPONSE_COMPLETE", "HTTP_SEND_START", "HTTP_SEND_END"],
      ])
      const model = ["REQUEST_START", "QUEUE_START", "REQUEST_END"]
      for (const name of ["outer", "middle", "inner"]) expect(events(spans(), name)).toEqual([model])
      const compute = ["COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END"]
      expect(events(spans(), "compute").map((names) => names.filter((name) => name !== "CHECKED"))).toEqual([
        compute,
        compute,
        compute,
      ])
      expect(events(spans(), "compute").flat()).toContain("CHECKED")
      expect(events(spans(), "TOKENIZE")).toEqual([["TOKENIZE_START", "WORD", "TOKENIZE_END"]])
      expect(middle && attributes([middle], "middle")).toEqual({
        "triton.model_name": "middle",
        "triton.model_version": 2,
        "triton.trace_id": 2,
        "triton.trace_parent_id": 1,
        "triton.request_id": "7",
      })
      expect(attributes(spans(), "outer")).toMatchObject({ "triton.trace_id": 1, "triton.trace_parent_id": 0 })
      expect(new Set(spans().map(({ kind }) => kind))).toEqual(new Set([2]))
      expect(received[0]).toMatchObject({
        url: "/v1/traces",
        headers: { "content-type": "application/json", authorization: "a b" },
        resource: { "service.name": "nereid", "deployment.environment": "test" },
      })
    }),
  )

  it.live("continues that of the caller, whatever rate, count and the caller's flag are", () =>
    Effect.gen(function* () {
      const { url, spans } = yield* receiver()
      const trace = { ...mode, rate: 1000, count: 1, openTelemetry: { url } }
      yield* serving(trace, async ({ infer, call, settings }) => {
        await infer("inner", 1)
        expect(await call("middle", { traceparent: traceparent("01") })).toBe("0")
        await infer("inner", 1, { traceparent: traceparent("01") })
        await infer("inner", 1, { traceparent: traceparent("00") })
        await infer("inner", 1, { traceparent: "nonsense" })
        expect(await settings()).toMatchObject({ trace_count: "1", trace_rate: "1000" })
        await settings({ trace_level: ["OFF"] })
        await infer("inner", 1, { traceparent: traceparent("01") })
      })
      const roots = spans().filter(({ name }) => name === "InferRequest")
      expect(roots.map(({ parentSpanId }) => parentSpanId)).toEqual(Array(3).fill("00f067aa0ba902b7"))
      expect(new Set(spans().map(({ traceId }) => traceId))).toEqual(new Set([traceId]))
    }),
  )

  it.live("of a failed request is complete too", () =>
    Effect.gen(function* () {
      const { url, spans } = yield* receiver()
      yield* serving({ ...mode, openTelemetry: { url } }, async ({ infer }) => {
        expect(await infer("middle", -1)).toBe(400)
      })
      const [root] = tree(spans())
      expect(root).toEqual(["InferRequest", ["middle", ["compute"], ["inner", ["compute", ["TOKENIZE"]]]]])
    }),
  )
})

describe("the export", () => {
  it.live("sends full batches at once, and the rest at the stop", () =>
    Effect.gen(function* () {
      const { url, received } = yield* receiver()
      const openTelemetry = { url, maxExportBatchSize: 4, scheduleDelay: "1 hour" } as const
      yield* serving({ ...mode, openTelemetry }, async ({ infer }) => {
        for (let index = 0; index < 3; index++) await infer("middle", 1)
      })
      const sizes = received.map(({ spans }) => spans.length)
      expect(sizes.reduce((sum, size) => sum + size)).toBe(18)
      expect(Math.max(...sizes)).toBe(4)
    }),
  )

  it.live("drops spans beyond the queue, and reports a receiver that refuses them, once each", () =>
    Effect.gen(function* () {
      const { url, spans } = yield* receiver(400, 400)
      const lines: Array<string> = []
      const log = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
      const openTelemetry = { url, maxQueueSize: 5, maxExportBatchSize: 3, scheduleDelay: "1 hour" } as const
      yield* serving({ ...mode, openTelemetry }, async ({ infer }) => {
        await infer("outer", 1)
      }).pipe(Effect.provide(log))
      expect(spans()).toHaveLength(5)
      expect(lines.filter((line) => line.includes("further spans are dropped"))).toHaveLength(1)
      expect(lines.filter((line) => line.startsWith(`Traces cannot be sent to ${url}: `))).toHaveLength(1)
    }),
  )

  it.live("shows its settings as Triton, which do not change; without a user of the URL", () =>
    Effect.gen(function* () {
      const resource = { a: "b", "service.name": "edge" }
      const openTelemetry = {
        url: "http://user:secret@127.0.0.1:1/v1/traces",
        resource,
        scheduleDelay: "1 hour",
      } as const
      yield* serving({ ...mode, openTelemetry }, async ({ settings }) => {
        const shown = {
          trace_level: ["TIMESTAMPS"],
          trace_rate: "1",
          trace_count: "-1",
          trace_mode: "opentelemetry",
          url: "http://127.0.0.1:1/v1/traces",
          resource: "a=b,service.name=edge",
          bsp_max_queue_size: "2048",
          bsp_schedule_delay: "3600000",
          bsp_max_export_batch_size: "512",
        }
        expect(await settings()).toEqual(shown)
        expect(await settings({ trace_rate: "3" })).toEqual({ ...shown, trace_rate: "3" })
      })
    }),
  )

  it.live("refuses options that make no sense", () =>
    Effect.gen(function* () {
      const failure = (openTelemetry: NonNullable<NonNullable<Server.ServerOptions["trace"]>["openTelemetry"]>) =>
        Effect.map(Effect.flip(serving({ ...mode, openTelemetry }, async () => {})), ({ message }) => message)
      expect(yield* failure({ url: "localhost:4318" })).toBe(
        "trace.openTelemetry.url must be an http or https URL, but localhost:4318 was given",
      )
      expect(yield* failure({ maxQueueSize: 0 })).toContain("must be an integer from 1 to 1000000, but 0 was given")
    }),
  )
})

it.live("the trace file has the calls of a model with their parent, their tensors, and named activities", () =>
  Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), "nereid-trace-"))),
      (path) => Effect.promise(() => rm(path, { recursive: true })),
    )
    const file = join(folder, "trace")
    yield* serving({ file, levels: ["TIMESTAMPS", "TENSORS"], rate: 1 }, async ({ infer }) => {
      expect(await infer("middle", 1)).toBe(200)
    })
    const elements: ReadonlyArray<Record<string, unknown>> = JSON.parse(
      yield* Effect.promise(() => readFile(file, "utf8")),
    )
    expect(elements.filter((element) => !("timestamps" in element))).toEqual([
      { id: 1, model_name: "middle", model_version: 2, request_id: "7" },
      { id: 1, activity: "TENSOR_QUEUE_INPUT", tensor: { name: "X", data: "1", shape: "1", dtype: "INT32" } },
      { id: 1, activity: "TENSOR_BACKEND_OUTPUT", tensor: { name: "X", data: "2", shape: "1", dtype: "INT32" } },
      { id: 2, model_name: "inner", model_version: 1, parent_id: 1, request_id: "7" },
      { id: 2, activity: "TENSOR_QUEUE_INPUT", tensor: { name: "X", data: "1", shape: "1,1", dtype: "INT32" } },
      { id: 2, activity: "TENSOR_BACKEND_OUTPUT", tensor: { name: "X", data: "2", shape: "1,1", dtype: "INT32" } },
    ])
    const names = elements.map(({ timestamps }) =>
      Array.isArray(timestamps) ? timestamps.map(({ name }: { readonly name: string }) => name) : [],
    )
    expect(names.find((all) => all.includes("WORD"))?.filter((name) => !name.startsWith("COMPUTE"))).toEqual([
      "REQUEST_START",
      "QUEUE_START",
      "TOKENIZE_START",
      "WORD",
      "TOKENIZE_END",
      "CHECKED",
      "REQUEST_END",
    ])
  }),
)
