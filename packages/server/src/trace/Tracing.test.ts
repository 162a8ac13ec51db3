/** Trace files: the selection of requests, the files, and their contents (C39). */
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { create, toBinary } from "@bufbuild/protobuf"
import { assert, describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Logger, Scope, Stream } from "effect"
import { Model, Tensor } from "@nereid/core"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { frame, rawCall, rawSession } from "../grpc/GrpcServer.fixture.ts"
import { inferModel } from "../http/HttpInfer.fixture.ts"
import * as Server from "../Server.ts"

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { X: Tensor.INT32("n"), TEXT: Tensor.optional(Tensor.utf8()) },
  outputs: { X: Tensor.INT32("n") },
}) {}

class Other extends Model.Service<Other>()("other", {
  inputs: { X: Tensor.INT32("n") },
  outputs: { X: Tensor.INT32("n") },
  version: 2,
}) {}

class Gated extends Model.Service<Gated>()("gated", {
  inputs: { X: Tensor.INT32("n") },
  outputs: { X: Tensor.INT32("n") },
}) {}

/** Answers with its input twice. */
class Twice extends Model.Service<Twice>()("twice", {
  inputs: { X: Tensor.INT32("n") },
  outputs: { X: Tensor.INT32("n") },
}) {}

interface Element {
  readonly id: number
  readonly model_name?: string
  readonly timestamps?: ReadonlyArray<{ readonly name: string; readonly ns: number }>
  readonly tensor?: { readonly name: string; readonly data: string }
}

const options: Server.ServerOptions["trace"] = { levels: ["TIMESTAMPS"], rate: 1 }

/** Returns the trace files of a server after its end, by the suffix of their name. */
const traced = Effect.fnUntraced(function* <E>(
  trace: Server.ServerOptions["trace"],
  program: (server: {
    readonly infer: (model: string, body?: string) => Effect.Effect<number, Error>
    readonly post: (path: string, body: string) => Effect.Effect<string>
    readonly call: (
      method: "ModelInfer" | "ModelStreamInfer",
      ...models: ReadonlyArray<string>
    ) => Effect.Effect<string | undefined>
    readonly entered: Effect.Effect<void>
    /** Completes once the server has cancelled a request. */
    readonly cancelled: Effect.Effect<void>
  }) => Effect.Effect<void, E, Scope.Scope>,
  fastInference = true,
) {
  const folder = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "nereid-trace-"))),
    (path) => Effect.promise(() => rm(path, { recursive: true })),
  )
  const scope = yield* Scope.make()
  const free = { host: "127.0.0.1", port: 0 }
  const entered = yield* Deferred.make<void>()
  const cancelled = yield* Deferred.make<void>()
  const models = Layer.mergeAll(
    Model.each(Echo, ({ X }) => Effect.succeed({ X })),
    Model.each(Other, ({ X }) => Effect.succeed({ X })),
    Model.each(Gated, () =>
      Effect.andThen(Deferred.succeed(entered, undefined), Effect.never).pipe(
        Effect.onInterrupt(() => Deferred.succeed(cancelled, undefined)),
      ),
    ),
    Model.stream(Twice, ({ X }) => Stream.make({ X }, { X })),
  )
  const layer = Server.layer([Echo, Other, Gated, Twice], {
    http: free,
    grpc: free,
    metrics: false,
    fastInference,
    trace: { file: join(folder, "trace"), ...trace },
  })
  const { http, grpc } = yield* Effect.provide(
    Server.Server,
    yield* Scope.provide(Layer.build(Layer.provide(layer, models)), scope),
  )
  assert(http !== undefined && grpc !== undefined)
  const session = yield* rawSession({ authority: `http://127.0.0.1:${grpc.port}` })
  const message = (modelName: string) =>
    frame(
      toBinary(
        GRPCInferenceService.method.modelInfer.input,
        create(GRPCInferenceService.method.modelInfer.input, {
          modelName,
          id: "7",
          inputs: [{ name: "X", datatype: "INT32", shape: [1n], contents: { intContents: [5] } }],
        }),
      ),
    )
  yield* program({
    infer: (model, body = '{"id":"7","inputs":[{"name":"X","datatype":"INT32","shape":[2],"data":[1,-2]}]}') =>
      Effect.map(inferModel(http, model, body, { connection: "close" }), ({ status }) => status),
    post: (path, body) =>
      Effect.promise(async () => {
        const headers = { connection: "close" }
        return (await fetch(`http://127.0.0.1:${http.port}${path}`, { method: "POST", headers, body })).text()
      }),
    call: (method, ...models) =>
      Effect.map(
        rawCall(session, {
          chunks: models.map(message),
          headers: { ":path": `/${GRPCInferenceService.typeName}/${method}` },
        }),
        ({ status }) => status,
      ),
    entered: Deferred.await(entered),
    cancelled: Deferred.await(cancelled),
  })
  yield* Scope.close(scope, Exit.void)
  const names = yield* Effect.promise(() => readdir(folder))
  const files = yield* Effect.forEach(names.toSorted(), (name) =>
    Effect.promise(async () => {
      const elements: ReadonlyArray<Element> = JSON.parse(await readFile(join(folder, name), "utf8"))
      return [name.slice("trace".length), elements] as const
    }),
  )
  return Object.fromEntries(files)
})

/** The names of the moments, which must be in order. */
const points = (elements: ReadonlyArray<Element> = [], index = 0): ReadonlyArray<string> => {
  const timestamps = elements.flatMap(({ timestamps }) => (timestamps === undefined ? [] : [timestamps]))[index] ?? []
  const times = timestamps.map(({ ns }) => ns)
  expect(times).toEqual(times.toSorted((a, b) => a - b))
  expect(times.every((time) => Number.isSafeInteger(time) && time > 0)).toBe(true)
  return timestamps.map(({ name }) => name)
}

const inside = [
  "REQUEST_START",
  "QUEUE_START",
  "COMPUTE_START",
  "COMPUTE_INPUT_END",
  "COMPUTE_OUTPUT_START",
  "COMPUTE_END",
  "INFER_RESPONSE_COMPLETE",
  "REQUEST_END",
]

const modelsOf = (elements: ReadonlyArray<Element> = []) => elements.flatMap(({ model_name }) => model_name ?? [])

describe("a trace", () => {
  it.live("of a request over HTTP has its model, its id, and its moments from the first byte to the last", () =>
    Effect.gen(function* () {
      const { "": elements = [] } = yield* traced(options, ({ infer }) =>
        Effect.gen(function* () {
          expect(yield* infer("echo")).toBe(200)
          expect(yield* infer("other")).toBe(200)
        }),
      )
      expect(elements.map((element) => ("timestamps" in element ? { id: element.id } : element))).toEqual([
        { id: 1, model_name: "echo", model_version: 1, request_id: "7" },
        { id: 1 },
        { id: 2, model_name: "other", model_version: 2, request_id: "7" },
        { id: 2 },
      ])
      expect(points(elements)).toEqual([
        "HTTP_RECV_START",
        "HTTP_RECV_END",
        ...inside,
        "HTTP_SEND_START",
        "HTTP_SEND_END",
      ])
    }),
  )

  it.live.each([true, false])(
    "of a request over gRPC has the moments of that port (own path for unary calls: %s)",
    (fast) =>
      Effect.gen(function* () {
        const { "": elements } = yield* traced(
          options,
          ({ call }) => Effect.map(call("ModelInfer", "echo"), (status) => expect(status).toBe("0")),
          fast,
        )
        const [start, end] = [
          ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END"],
          ["GRPC_SEND_START", "GRPC_SEND_END"],
        ]
        expect(points(elements)).toEqual([...start, ...inside, ...end])
      }),
  )

  it.live("of /generate and /generate_stream is like any other, also where a response too many ends it", () =>
    Effect.gen(function* () {
      const levels = ["TIMESTAMPS", "TENSORS"] as const
      const { "": elements = [] } = yield* traced({ ...options, levels }, ({ post }) =>
        Effect.gen(function* () {
          expect(yield* post("/v2/models/echo/generate", '{"id":"7","X":[1,2]}')).toContain('"X":[1,2]')
          expect(yield* post("/v2/models/twice/generate", '{"X":[3]}')).toContain("exactly 1 response")
          expect(yield* post("/v2/models/twice/generate_stream", '{"X":[4]}')).toMatch(/^(data: .*"X":4\}\n\n){2}$/)
        }),
      )
      expect(modelsOf(elements)).toEqual(["echo", "twice", "twice"])
      const port = ["HTTP_RECV_START", "HTTP_RECV_END"]
      const sent = ["HTTP_SEND_START", "HTTP_SEND_END"]
      expect(points(elements, 0)).toEqual([...port, ...inside, ...sent])
      const ended = ["REQUEST_START", "QUEUE_START", "REQUEST_END"]
      expect(points(elements, 1)).toEqual([...port, ...ended, ...sent])
      expect(points(elements, 2)).toEqual([...port, ...inside, ...sent])
      const tensors = elements.flatMap(({ id, tensor }) => (tensor === undefined ? [] : `${id}: ${tensor.data}`))
      expect(tensors).toEqual(["1: 1,2", "1: 1,2", "2: 3", "2: 3", "2: 3", "3: 4", "3: 4", "3: 4"])
    }),
  )

  it.live("there is for each request of a stream", () =>
    Effect.gen(function* () {
      const { "": elements } = yield* traced(options, ({ call }) =>
        Effect.map(call("ModelStreamInfer", "echo", "other"), (status) => expect(status).toBe("0")),
      )
      expect(modelsOf(elements).toSorted()).toEqual(["echo", "other"])
      expect(points(elements, 1)).toEqual(inside)
    }),
  )

  it.live("of a request that is refused, or whose caller goes away, is complete too", () =>
    Effect.gen(function* () {
      const { "": elements } = yield* traced(options, ({ infer, entered, cancelled }) =>
        Effect.gen(function* () {
          expect(yield* infer("echo", '{"inputs":[]}')).toBe(400)
          const caller = yield* Effect.forkChild(infer("gated"), { startImmediately: true })
          yield* entered
          yield* Fiber.interrupt(caller)
          yield* cancelled
        }),
      )
      const port = ["HTTP_RECV_START", "HTTP_RECV_END"]
      const sent = ["HTTP_SEND_START", "HTTP_SEND_END"]
      expect(points(elements, 0)).toEqual([...port, "REQUEST_START", "REQUEST_END", ...sent])
      expect(points(elements, 1)).toEqual([...port, "REQUEST_START", "QUEUE_START", "REQUEST_END", ...sent])
    }),
  )

  it.live("contains only tensors with level TENSORS", () =>
    Effect.gen(function* () {
      const inputs =
        '{"inputs":[{"name":"X","datatype":"INT32","shape":[2],"data":[1,-2]},{"name":"TEXT","datatype":"BYTES","shape":[1],"data":["ä"]}]}'
      const wrong = '{"inputs":[{"name":"X","datatype":"FP64","shape":[1],"data":[1]}]}'
      const { "": elements } = yield* traced({ ...options, levels: ["TENSORS"] }, ({ infer }) =>
        Effect.gen(function* () {
          yield* infer("echo", inputs)
          expect(yield* infer("echo", wrong)).toBe(400)
        }),
      )
      expect(elements).toEqual([
        { id: 1, model_name: "echo", model_version: 1 },
        { id: 1, activity: "TENSOR_QUEUE_INPUT", tensor: { name: "X", data: "1,-2", shape: "2", dtype: "INT32" } },
        { id: 1, activity: "TENSOR_QUEUE_INPUT", tensor: { name: "TEXT", data: "ä", shape: "1", dtype: "BYTES" } },
        { id: 1, activity: "TENSOR_BACKEND_OUTPUT", tensor: { name: "X", data: "1,-2", shape: "2", dtype: "INT32" } },
        { id: 2, model_name: "echo", model_version: 1 },
      ])
    }),
  )

  it.live("the tensors of a request are printed up to some length, however long they are", () =>
    Effect.gen(function* () {
      const text = "x".repeat(5 * 2 ** 20)
      const inputs = `{"inputs":[{"name":"X","datatype":"INT32","shape":[12000],"data":[${Array.from({ length: 12_000 }).fill(7).join()}]},{"name":"TEXT","datatype":"BYTES","shape":[1],"data":["${text}"]}]}`
      const { "": elements = [] } = yield* traced({ ...options, levels: ["TENSORS"] }, ({ infer }) =>
        Effect.asVoid(infer("echo", inputs)),
      )
      const printed = elements.flatMap(({ tensor }) => (tensor === undefined ? [] : [tensor]))
      expect(printed.map(({ name, data }) => [name, data.length, data.slice(-4)])).toEqual([
        ["X", 20_001, ",7,…"],
        ["TEXT", 4 * 2 ** 20 - 20_001 + 2, "xx,…"],
      ])
    }),
  )
})

const times = (count: number, infer: (model: string) => Effect.Effect<number, Error>, model = "echo") =>
  Effect.forEach(Array.from({ length: count }), () => infer(model), { discard: true })

const counts = (files: Readonly<Record<string, ReadonlyArray<Element>>>) =>
  Object.fromEntries(Object.entries(files).map(([name, elements]) => [name, modelsOf(elements).length]))

describe("which requests, and which files", () => {
  it.live("every rate-th one, of all models together, all into one file", () =>
    Effect.gen(function* () {
      const files = yield* traced({ ...options, rate: 3 }, ({ infer }) =>
        Effect.gen(function* () {
          yield* times(5, infer)
          yield* times(2, infer, "other")
          // No request to a model.
          yield* infer("none")
        }),
      )
      expect(modelsOf(files[""])).toEqual(["echo", "other"])
      expect(Object.keys(files)).toEqual([""])
    }),
  )

  it.live("log_frequency traces in each file with a number, the last with what is left", () =>
    Effect.gen(function* () {
      const files = yield* traced({ ...options, logFrequency: 2 }, ({ infer }) => times(5, infer))
      expect(counts(files)).toEqual({ ".0": 2, ".1": 2, ".2": 1 })
    }),
  )

  it.live("writes at most trace_count traces, and reports the remaining count", () =>
    Effect.gen(function* () {
      const files = yield* traced({ ...options, count: 3 }, ({ infer, post }) =>
        Effect.gen(function* () {
          yield* times(2, infer)
          expect(yield* post("/v2/trace/setting", "{}")).toContain('"trace_count":"1"')
          yield* times(3, infer)
          expect(yield* post("/v2/trace/setting", "{}")).toContain('"trace_count":"0"')
          yield* post("/v2/trace/setting", '{"trace_count":"1"}')
          yield* times(3, infer)
        }),
      )
      expect(counts(files)).toEqual({ ".0": 3, ".1": 1 })
    }),
  )

  it.live("as the settings of the moment say, of one model before those of all", () =>
    Effect.gen(function* () {
      const files = yield* traced({}, ({ infer, post }) =>
        Effect.gen(function* () {
          const all = (settings: object) => post("/v2/trace/setting", JSON.stringify(settings))
          const other = (settings: object) => post("/v2/models/other/trace/setting", JSON.stringify(settings))
          yield* times(1, infer)
          yield* other({ trace_level: ["TIMESTAMPS"], trace_rate: "1" })
          yield* times(1, infer)
          yield* times(1, infer, "other")
          yield* all({ trace_level: ["TIMESTAMPS"], trace_rate: "1" })
          yield* times(1, infer)
          yield* other({ trace_level: ["OFF"] })
          yield* times(1, infer, "other")
          yield* all({ trace_rate: "0" })
          yield* times(1, infer)
        }),
      )
      expect(modelsOf(files[""])).toEqual(["other", "echo"])
    }),
  )

  it.live("none without a file, whatever the settings", () =>
    Effect.gen(function* () {
      const files = yield* traced({ ...options, file: "" }, ({ infer }) => times(2, infer))
      expect(files).toEqual({})
    }),
  )

  it.live("reports an unwritable file once, and continues to serve requests", () =>
    Effect.gen(function* () {
      const messages: Array<string> = []
      const logger = Logger.make(({ message }) => void messages.push(String(message)))
      const file = join(tmpdir(), "nereid-no-such-folder", "trace")
      yield* traced({ ...options, file }, ({ infer }) =>
        Effect.gen(function* () {
          for (let count = 0; count < 3; count++) expect(yield* infer("echo")).toBe(200)
        }),
      ).pipe(Effect.provide(Logger.layer([logger])))
      expect(messages.filter((message) => message.includes("trace file"))).toEqual([
        expect.stringContaining(`The trace file ${file} cannot be written: ENOENT`),
      ])
    }),
  )
})
