/**
 * Client and server together, over sockets: one table of cases, run by the model in the same process, over gRPC and
 * over HTTP. The results must be equal.
 */
import { fromTag } from "@nereid/core/internal/error/InferenceError"
import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Schema, Scope } from "effect"
import { Client } from "@nereid/client"
import { Errors, Model, RequestContext, Tensor } from "@nereid/core"
import { errorStatuses } from "@nereid/core/internal/wire/ErrorStatus"
import { make as tensor } from "@nereid/core/internal/tensor/TypedTensor"
import { Server } from "@nereid/server"

const fields = {
  TEXT: Tensor.utf8(),
  NUMBER: Tensor.scalar("FP32"),
  FLAG: Tensor.scalar("BOOL"),
  BIG: Tensor.scalar("INT64"),
  LABEL: Tensor.labels(["negative", "positive"]),
  JSON: Tensor.json(Schema.Struct({ at: Schema.Array(Schema.Number) })),
  FLOATS: Tensor.FP32("n"),
  LONGS: Tensor.INT64(2),
  UNSIGNED: Tensor.UINT64(1),
  HALVES: Tensor.FP16(2),
  BRAIN: Tensor.BF16(2),
  BYTES: Tensor.BYTES(3),
  BOOLS: Tensor.BOOL(2),
  DOUBLES: Tensor.FP64(1, 2),
  SMALL: Tensor.INT8(2),
}

class Echo extends Model.Service<Echo>()("echo", { inputs: fields, outputs: fields, maxBatchSize: 8 }) {}
class Single extends Model.Service<Single>()("single", { inputs: fields, outputs: fields }) {}

class Count extends Model.Service<Count>()("count", {
  inputs: { A: Tensor.INT32("a"), B: Tensor.optional(Tensor.INT32("b")) },
  outputs: { COUNT: Tensor.scalar("INT32") },
  maxBatchSize: 4,
}) {}

class Twice extends Model.Service<Twice>()("twice", {
  inputs: { X: Tensor.FP32("n") },
  outputs: { Y: Tensor.FP32("n") },
  maxBatchSize: 16,
  batching: { maxQueueSize: 4096 },
}) {}

class Fail extends Model.Service<Fail>()("fail", {
  inputs: { TAG: Tensor.utf8() },
  outputs: { Y: Tensor.utf8() },
}) {}

/** Reports its handler's view of the request. */
class Told extends Model.Service<Told>()("told", { inputs: {}, outputs: { TOLD: Tensor.utf8() } }) {}

/** Holds every request until it is let go, one at a time; two may wait. */
class Hold extends Model.Service<Hold>()("hold", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { X: Tensor.scalar("INT32") },
  batching: { maxQueueSize: 2 },
}) {}

/** Rows of Picky whose callers have not left. */
const held = new Set<number>()

/** Fails at 9, once five other rows are there, which are held. */
class Picky extends Model.Service<Picky>()("picky", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { X: Tensor.scalar("INT32") },
  maxBatchSize: 2,
}) {}

class Gate extends Context.Service<
  Gate,
  {
    readonly open: Deferred.Deferred<void>
    readonly entered: Deferred.Deferred<void>
    readonly left: Deferred.Deferred<void>
  }
>()("test/Gate") {
  static readonly layer = Layer.effect(
    Gate,
    Effect.all({ open: Deferred.make<void>(), entered: Deferred.make<void>(), left: Deferred.make<void>() }),
  )
}

const sample: Model.Sample<typeof fields> = {
  TEXT: "größer als 100 %, \u{1F419}",
  NUMBER: Math.fround(0.1),
  FLAG: true,
  BIG: -(2n ** 63n),
  LABEL: "positive",
  JSON: { at: [1, 2.5] },
  FLOATS: tensor("FP32", [5], Float32Array.of(0, -0, NaN, Infinity, 1e-40)),
  LONGS: tensor("INT64", [2], BigInt64Array.of(2n ** 63n - 1n, -1n)),
  UNSIGNED: tensor("UINT64", [1], BigUint64Array.of(2n ** 64n - 1n)),
  HALVES: tensor("FP16", [2], Float16Array.of(0.5, 65504)),
  BRAIN: tensor("BF16", [2], Uint16Array.of(0x3f80, 0xffff)),
  BYTES: tensor("BYTES", [3], [new Uint8Array(0), Uint8Array.of(0, 255), Uint8Array.of(1)]),
  BOOLS: tensor("BOOL", [2], Uint8Array.of(0, 1)),
  DOUBLES: tensor("FP64", [1, 2], Float64Array.of(Math.PI, Number.MIN_VALUE)),
  SMALL: tensor("INT8", [2], Int8Array.of(-128, 127)),
}

const tags = Object.keys(errorStatuses)

const live = Layer.mergeAll(
  Model.each(Told, () =>
    Effect.map(RequestContext, ({ id, parameters }) => ({
      TOLD: `${id}: ${Object.entries(parameters).map(([name, value]) => `${name}=${value}:${typeof value}`)}`,
    })),
  ),
  Model.each(Echo, (sample) => Effect.succeed(sample)),
  Model.each(Single, (sample) => Effect.succeed(sample)),
  Model.each(Count, ({ A, B }) => Effect.succeed({ COUNT: A.data.length * 100 + (B?.data.length ?? 0) })),
  Model.batch(Twice, ({ X }) =>
    Effect.succeed({
      Y: tensor(
        "FP32",
        X.shape,
        X.data.map((x) => x * 2),
      ),
    }),
  ),
  Model.each(Fail, ({ TAG }) => Effect.fail(fromTag(TAG, `100 % ${TAG}, größer\nals`) ?? new Error("a bug"))),
  Model.each(
    Hold,
    Effect.map(
      Effect.service(Gate),
      (gate) =>
        ({ X }) =>
          Deferred.succeed(gate.entered, undefined).pipe(
            Effect.andThen(Deferred.await(gate.open)),
            Effect.as({ X }),
            Effect.onInterrupt(() => Deferred.succeed(gate.left, undefined)),
          ),
    ),
  ),
  Model.each(
    Picky,
    ({ X }) =>
      Effect.gen(function* () {
        if (X === 9) {
          yield* until(() => held.size === 5)
          return yield* Effect.fail(new Errors.AlreadyExists({ message: "9" }))
        }
        held.add(X)
        return yield* Effect.never
      }).pipe(Effect.onInterrupt(() => Effect.sync(() => held.delete(X)))),
    { instances: 4 },
  ),
)

const models = [Echo, Single, Count, Twice, Fail, Hold, Told, Picky] as const
type Models = Echo | Single | Count | Twice | Fail | Hold | Told | Picky

const anyPort = { host: "127.0.0.1", port: 0 }
const large = 64 * 2 ** 20

type Where = "local" | "grpc" | "http"

/** The server that a test runs against. */
class Served extends Context.Service<
  Served,
  { readonly hold: Context.Service.Shape<typeof Hold>; readonly url: string }
>()("test/Served") {}

const clients = (url: string) =>
  Layer.mergeAll(
    Client.layer(Echo, { url }),
    Client.layer(Single, { url }),
    Client.layer(Count, { url }),
    Client.layer(Twice, { url }),
    Client.layer(Fail, { url }),
    Client.layer(Hold, { url }),
    Client.layer(Told, { url }),
    Client.layer(Picky, { url }),
  )

const at = (where: Where) => {
  const server = Server.layer(models, { http: anyPort, grpc: anyPort, metrics: false, maxInputSize: large })
  const served = Layer.effect(
    Served,
    Effect.gen(function* () {
      const { grpc, http } = yield* Server.Server
      const port = where === "grpc" ? grpc?.port : http?.port
      return { hold: yield* Hold, url: `${where}://127.0.0.1:${port}` }
    }),
  ).pipe(Layer.provide(server))
  const callers: Layer.Layer<Models, Client.InvalidUrl, Models | Served> =
    where === "local"
      ? Layer.effectContext(Effect.context<Models>())
      : Layer.unwrap(Effect.map(Effect.service(Served), ({ url }) => clients(url)))
  return Layer.fresh(callers.pipe(Layer.provideMerge(served), Layer.provide(live), Layer.provideMerge(Gate.layer)))
}

/** Goes on when the condition holds, which events of sockets bring about. */
const until = (condition: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (condition() ? Effect.void : Effect.andThen(Effect.yieldNow, until(condition))))

/** Tensors compared by their bytes: NaN, -0 and BF16 included. */
const plain = (value: object) =>
  Object.fromEntries(
    Object.entries(value).map(([name, field]) => [
      name,
      field instanceof Object && "bytes" in field
        ? [field.datatype, field.shape, Buffer.from(field.bytes).toString("hex")]
        : field,
    ]),
  )

describe.each<Where>(["local", "grpc", "http"])("%s", (where) => {
  const layer = at(where)

  it.live("every kind of field comes back as it was sent", () =>
    Effect.gen(function* () {
      const echo = yield* Echo
      const response = yield* echo.infer(sample)
      expect(plain(response)).toEqual(plain(sample))
      expect([response.FLOATS.data, response.LONGS.data, response.UNSIGNED.data, response.HALVES.data]).toEqual([
        sample.FLOATS.data,
        sample.LONGS.data,
        sample.UNSIGNED.data,
        sample.HALVES.data,
      ])
      expect([response.BRAIN.data, response.DOUBLES.data]).toEqual([sample.BRAIN.data, sample.DOUBLES.data])
      expect(response.BYTES.data.map((element) => [...element])).toEqual([[], [0, 255], [1]])
    }).pipe(Effect.provide(layer)),
  )

  it.live("without a batch dimension as well", () =>
    Effect.gen(function* () {
      const single = yield* Single
      expect(plain(yield* single.infer(sample))).toEqual(plain(sample))
    }).pipe(Effect.provide(layer)),
  )

  it.live("optional inputs may be left out, and tensors may be empty", () =>
    Effect.gen(function* () {
      const { infer } = yield* Count
      const [A, B] = [tensor("INT32", [2], Int32Array.of(1, 2)), tensor("INT32", [3], Int32Array.of(1, 2, 3))]
      expect(yield* infer({ A, B })).toEqual({ COUNT: 203 })
      expect(yield* infer({ A })).toEqual({ COUNT: 200 })
      expect(yield* infer({ A: tensor("INT32", [0], new Int32Array(0)) })).toEqual({ COUNT: 0 })
    }).pipe(Effect.provide(layer)),
  )

  it.live("parameters of every kind reach the handler, with the id", () =>
    Effect.gen(function* () {
      const { infer } = yield* Told
      const parameters = { text: "ä", flag: true, double: 2, small: -1n, large: 2n ** 64n - 1n }
      const expectedText =
        "text=ä:string,flag=true:boolean,double=2:number,small=-1:bigint,large=18446744073709551615:bigint"
      expect(yield* infer({}, { id: "7", parameters })).toEqual({ TOLD: `7: ${expectedText}` })
      expect(yield* infer({})).toEqual({ TOLD: ": " })
    }).pipe(Effect.provide(layer)),
  )

  it.live("a batch stays one", () =>
    Effect.gen(function* () {
      const { inferBatch } = yield* Twice
      const { Y } = yield* inferBatch({ X: tensor("FP32", [3, 2], Float32Array.of(1, 2, 3, 4, 5, 6)) })
      expect([Y.shape, [...Y.data]]).toEqual([
        [3, 2],
        [2, 4, 6, 8, 10, 12],
      ])
    }).pipe(Effect.provide(layer)),
  )

  it.live("a batch of more rows than the model takes goes in chunks, unless it must not", () =>
    Effect.gen(function* () {
      const { inferBatch } = yield* Twice
      const X = tensor(
        "FP32",
        [100, 2],
        Float32Array.from({ length: 200 }, (_, index) => index),
      )
      const { Y } = yield* inferBatch({ X })
      expect([Y.shape, Y.data]).toEqual([[100, 2], X.data.map((x) => 2 * x)])
      const error = yield* Effect.flip(inferBatch({ X }, { concurrentChunks: 0 }))
      expect(error).toMatchObject({
        _tag: "InvalidRequest",
        message: "inference request batch-size must be <= 16 for 'twice', got 100",
      })
    }).pipe(Effect.provide(layer)),
  )

  it.live("a chunk that fails ends the others, also on the server", () =>
    Effect.gen(function* () {
      const { inferBatch } = yield* Picky
      const X = tensor("INT32", [8, 1], Int32Array.of(1, 2, 3, 9, 5, 6, 7, 8))
      const error = yield* Effect.flip(inferBatch({ X }, { concurrentChunks: 3 }))
      expect(error).toEqual(new Errors.AlreadyExists({ message: "9" }))
      yield* until(() => held.size === 0)
    }).pipe(Effect.provide(layer)),
  )

  it.live("16 MB go there and back", () =>
    Effect.gen(function* () {
      const { infer } = yield* Twice
      const X = Float32Array.from({ length: 4 * 2 ** 20 }, (_, index) => index)
      const { Y } = yield* infer({ X: tensor("FP32", [X.length], X) })
      expect(Y.data.length).toBe(X.length)
      expect(Y.data.every((y, index) => y === 2 * index)).toBe(true)
    }).pipe(Effect.provide(layer)),
  )

  it.live("1000 calls at once", () =>
    Effect.gen(function* () {
      const { infer } = yield* Twice
      const call = (index: number) => infer({ X: tensor("FP32", [1], Float32Array.of(index)) })
      const responses = yield* Effect.forEach(
        Array.from({ length: 1000 }, (_, index) => index),
        call,
        {
          concurrency: "unbounded",
        },
      )
      expect(responses.every(({ Y: { data } }, index) => data[0] === 2 * index)).toBe(true)
    }).pipe(Effect.provide(layer)),
  )

  it.live.each(tags)("%s of a handler", (tag) =>
    Effect.gen(function* () {
      const { infer } = yield* Fail
      const error = yield* Effect.flip(infer({ TAG: tag }))
      expect([error._tag, error.message]).toEqual([tag, `100 % ${tag}, größer\nals`])
    }).pipe(Effect.provide(layer)),
  )

  it.live("an input that does not fit is an InvalidRequest", () =>
    Effect.gen(function* () {
      const { infer } = yield* Hold
      const error = yield* Effect.flip(infer({ X: 0.5 }))
      expect(error._tag).toBe("InvalidRequest")
      expect(error.message).toContain("input 'X' of model 'hold'")
    }).pipe(Effect.provide(layer)),
  )

  it.live("a full queue is QueueFull, with the request's id", () =>
    Effect.gen(function* () {
      const { infer } = yield* Hold
      const { open, entered } = yield* Gate
      const { hold } = yield* Served
      const first = yield* Effect.forkChild(infer({ X: 1 }))
      yield* Deferred.await(entered)
      const waiting = yield* Effect.forkChild(Effect.all([infer({ X: 2 }), infer({ X: 3 })], { concurrency: 2 }))
      yield* until(() => hold.model.life.pending() === 2)
      const error = yield* Effect.flip(infer({ X: 4 }, { id: "4" }))
      expect([error._tag, error.message]).toEqual(["QueueFull", "[request id: 4] Exceeds maximum queue size"])
      yield* Deferred.succeed(open, undefined)
      expect([yield* Fiber.join(first), ...(yield* Fiber.join(waiting))]).toEqual([{ X: 1 }, { X: 2 }, { X: 3 }])
    }).pipe(Effect.provide(layer)),
  )

  it.live("a deadline that passes is DeadlineExceeded, and the request leaves its queue", () =>
    Effect.gen(function* () {
      const { infer } = yield* Hold
      const { open, entered } = yield* Gate
      const { hold } = yield* Served
      const first = yield* Effect.forkChild(infer({ X: 1 }))
      yield* Deferred.await(entered)
      const error = yield* Effect.flip(infer({ X: 2 }, { id: "2", timeout: "30 millis" }))
      expect([error._tag, error.message]).toEqual(["DeadlineExceeded", "[request id: 2] Deadline Exceeded"])
      yield* until(() => hold.model.life.pending() === 0)
      yield* Deferred.succeed(open, undefined)
      expect(yield* Fiber.join(first)).toEqual({ X: 1 })
    }).pipe(Effect.provide(layer)),
  )

  it.live("an interrupted call leaves its queue, or interrupts its handler", () =>
    Effect.gen(function* () {
      const { infer } = yield* Hold
      const { entered, left } = yield* Gate
      const { hold } = yield* Served
      const first = yield* Effect.forkChild(infer({ X: 1 }))
      yield* Deferred.await(entered)
      const second = yield* Effect.forkChild(infer({ X: 2 }))
      yield* until(() => hold.model.life.pending() === 1)
      yield* Fiber.interrupt(second)
      yield* until(() => hold.model.life.pending() === 0)
      yield* Fiber.interrupt(first)
      yield* Deferred.await(left)
      yield* until(() => hold.model.description.statistics.failures.CANCELED === 2)
    }).pipe(Effect.provide(layer)),
  )

  it.live("counts what it has done", () =>
    Effect.gen(function* () {
      const { model, infer } = yield* Twice
      const fail = yield* Fail
      yield* infer({ X: tensor("FP32", [1], Float32Array.of(1)) })
      yield* Effect.flip(fail.infer({ TAG: "ExecutionFailed" }))
      expect([model.description.statistics.success.count, model.description.statistics.inferenceCount]).toEqual([1, 1])
      expect([
        fail.model.description.statistics.fail.count,
        fail.model.description.statistics.failures.BACKEND,
      ]).toEqual([1, 1])
    }).pipe(Effect.provide(layer)),
  )
})

const scalar = { X: Tensor.scalar("FP32") }
class Unknown extends Model.Service<Unknown>()("un known", { inputs: scalar, outputs: scalar }) {}
class OtherInput extends Model.Service<OtherInput>()("twice", { inputs: { Z: scalar.X }, outputs: scalar }) {}
class OtherOutput extends Model.Service<OtherOutput>()("twice", {
  inputs: { X: Tensor.FP32("n") },
  outputs: { Z: Tensor.FP32("n") },
  maxBatchSize: 16,
}) {}
class OtherDatatype extends Model.Service<OtherDatatype>()("twice", {
  inputs: { X: Tensor.FP32("n") },
  outputs: { Y: Tensor.INT32("n") },
  maxBatchSize: 16,
}) {}

/** The error with which a promise client rejects, as text. */
const rejection = (promise: Promise<unknown>) =>
  Effect.promise(() =>
    promise.then(
      (value) => `no error, but ${JSON.stringify(value)}`,
      (error: Errors.InferenceError) => `${error._tag}: ${error.message}`,
    ),
  )

describe.each<"grpc" | "http">(["grpc", "http"])("%s, where client and server disagree:", (where) => {
  const layer = at(where)
  const X = tensor("FP32", [1], Float32Array.of(1))

  const open = Effect.fnUntraced(function* <A extends AsyncDisposable>(connect: (url: string) => Promise<A>) {
    const { url } = yield* Served
    return yield* Effect.acquireRelease(
      Effect.promise(() => connect(url)),
      (client) => Effect.promise(() => client[Symbol.asyncDispose]()),
    )
  })

  it.live("a model that is not there", () =>
    Effect.gen(function* () {
      const client = yield* open((url) => Client.connect(Unknown, { url }))
      const message = "ModelNotFound: Request for unknown model: 'un known' is not found"
      expect(yield* rejection(client.infer({ X: 1 }))).toBe(message)
    }).pipe(Effect.provide(layer)),
  )

  it.live("a version that is not there", () =>
    Effect.gen(function* () {
      const client = yield* open((url) => Client.connect(Twice, { url, version: 7 }))
      const message = "ModelNotFound: Request for unknown model: 'twice' version 7 is not found"
      expect(yield* rejection(client.infer({ X }))).toBe(message)
    }).pipe(Effect.provide(layer)),
  )

  it.live("an input that the server does not know", () =>
    Effect.gen(function* () {
      const client = yield* open((url) => Client.connect(OtherInput, { url }))
      const message = "InvalidRequest: [request id: <id_unknown>] unexpected inference input 'Z' for model 'twice'"
      expect(yield* rejection(client.infer({ Z: 1 }))).toBe(message)
    }).pipe(Effect.provide(layer)),
  )

  it.live("an output that the server does not send", () =>
    Effect.gen(function* () {
      const client = yield* open((url) => Client.connect(OtherOutput, { url }))
      const message =
        "ExecutionFailed: output 'Z' of model 'twice' in the server's response: is missing; the response has 'Y'"
      expect(yield* rejection(client.infer({ X }))).toBe(message)
    }).pipe(Effect.provide(layer)),
  )

  it.live("an output of another datatype", () =>
    Effect.gen(function* () {
      const client = yield* open((url) => Client.connect(OtherDatatype, { url }))
      const problem = `expected INT32[1,"n"], got FP32[1,1]`
      const message = `ExecutionFailed: output 'Y' of model 'twice' in the server's response: ${problem}`
      expect(yield* rejection(client.infer({ X }))).toBe(message)
    }).pipe(Effect.provide(layer)),
  )
})

describe.each<"grpc" | "http">(["grpc", "http"])("%s, when a request is larger than the server takes:", (where) => {
  it.live("it is refused, and the next call goes through", () =>
    Effect.gen(function* () {
      const { grpc, http } = yield* Server.Server
      const url = `${where}://127.0.0.1:${(where === "grpc" ? grpc : http)?.port}`
      const client = yield* Effect.service(Twice).pipe(
        Effect.provide(yield* Layer.build(Layer.fresh(Client.layer(Twice, { url })))),
      )
      const error = yield* Effect.flip(client.infer({ X: tensor("FP32", [2 ** 22], new Float32Array(2 ** 22)) }))
      expect(error._tag).toBe("InvalidRequest")
      expect(error.message).toMatch(where === "grpc" ? /16777246 vs\. 1000000/ : /16777363 bytes exceeds/)
      yield* client.infer({ X: tensor("FP32", [1], Float32Array.of(1)) })
    }).pipe(
      Effect.provide(
        Server.layer([Twice], {
          http: anyPort,
          grpc: anyPort,
          metrics: false,
          maxInputSize: 1e6,
          maxMessageSize: 1e6,
        }).pipe(Layer.provide(live), Layer.provide(Gate.layer)),
      ),
    ),
  )
})

describe.each<"grpc" | "http">(["grpc", "http"])("%s, when the server goes:", (where) => {
  it.live("a client outlives its server, and finds the next one at the same address", () =>
    Effect.gen(function* () {
      const start = Effect.fnUntraced(function* (port: number) {
        const scope = yield* Scope.make()
        const listen = { host: "127.0.0.1", port }
        const options = { http: false, grpc: false, metrics: false, [where]: listen } as const
        const built = yield* Layer.buildWithScope(
          Layer.fresh(Server.layer([Twice], options).pipe(Layer.provide(live), Layer.provide(Gate.layer))),
          scope,
        )
        return { port: Context.get(built, Server.Server)[where]?.port ?? 0, stop: Scope.close(scope, Exit.void) }
      })
      const call = { X: tensor("FP32", [1], Float32Array.of(1)) }

      const first = yield* start(0)
      const url = `${where}://127.0.0.1:${first.port}`
      const { infer, model } = yield* Effect.service(Twice).pipe(
        Effect.provide(yield* Layer.build(Client.layer(Twice, { url }))),
      )
      yield* infer(call)
      yield* first.stop
      const error = yield* Effect.flip(infer(call))
      expect(error._tag).toBe("Unavailable")
      expect(error.message).toContain(`127.0.0.1:${first.port}`)

      const second = yield* start(first.port)
      const { Y } = yield* infer(call)
      expect([...Y.data]).toEqual([2])
      expect(model.description.statistics.success.count).toBe(2)
      yield* second.stop
    }),
  )

  it.live("a layer needs no server to be built", () =>
    Effect.gen(function* () {
      const { model, infer } = yield* Twice
      expect(model.life.isReady()).toBe(true)
      const error = yield* Effect.flip(infer({ X: tensor("FP32", [1], Float32Array.of(1)) }))
      expect(error).toBeInstanceOf(Errors.Unavailable)
    }).pipe(Effect.provide(Client.layer(Twice, { url: `${where}://127.0.0.1:1` }))),
  )
})
