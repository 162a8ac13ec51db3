/** Large requests that wait behind others: their handlers may keep the inputs, and their messages are freed. */
import { setImmediate as nextTurn } from "node:timers/promises"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Result } from "effect"
import { Model, Tensor } from "@nereid/core"
import { encodeRequest } from "@nereid/core/internal/codec/json/BinaryExtension"
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import * as Gateway from "../gateway/Gateway.ts"
import { inferFrame, rawCall, rawSession } from "../grpc/GrpcServer.fixture.ts"
import * as GrpcServer from "../grpc/GrpcServer.ts"
import { inferModel } from "../http/HttpInfer.fixture.ts"
import * as HttpServer from "../http/HttpServer.ts"
import { ReceivedMemory } from "./ReceivedMemory.ts"

class First extends Model.Service<First>()("first", {
  inputs: { X: Tensor.FP32("n") },
  outputs: { Y: Tensor.FP32(1) },
  maxBatchSize: 8,
  batching: { maxQueueSize: 1_000 },
}) {}

/** Elements of a picture, and so many of them that the first ones are no longer young behind the last. */
const length = 150_000
const count = 64

/** Pictures after these. */
const more = 8

/** Its number, and so on. */
const picture = (number: number) => Float32Array.from({ length }, (_, index) => number + index)

const local = { host: "127.0.0.1", port: 0, stopTimeoutMillis: 1_000 }

type Kept = Array<Tensor.Tensor<"FP32">>

const layers = {
  each: (kept: Kept, opened: Effect.Effect<void>) =>
    Model.each(First, ({ X }) => {
      kept.push(X)
      return Effect.as(opened, { Y: Tensor.make("FP32", [1], X.data.slice(0, 1)) })
    }),
  batch: (kept: Kept, opened: Effect.Effect<void>) =>
    Model.batch(First, ({ X }) => {
      kept.push(X)
      const [rows = 0, width = 1] = X.shape
      const Y = Tensor.make(
        "FP32",
        [rows, 1],
        Float32Array.from({ length: rows }, (_, row) => X.data[row * width] ?? 0),
      )
      return Effect.as(opened, { Y })
    }),
  requests: (kept: Kept, opened: Effect.Effect<void>) =>
    Model.requests(First, (requests) =>
      Effect.as(
        opened,
        requests.map(({ inputs: { X } }) => {
          kept.push(X)
          return Result.succeed({ Y: Tensor.make("FP32", [1, 1], X.data.slice(0, 1)) })
        }),
      ),
    ),
}

const serve = Effect.fnUntraced(function* (kind: keyof typeof layers) {
  const kept: Kept = []
  const opened = yield* Deferred.make<void>()
  const layer = layers[kind](kept, Deferred.await(opened))
  const { model } = yield* Effect.provideContext(First, yield* Layer.build(layer))
  const gateway = Gateway.make(ModelStore.of([model]), { id: "nereid", version: "0" })
  const grpc = yield* GrpcServer.make(gateway, local)
  const http = yield* HttpServer.make(gateway, local)
  const session = yield* rawSession({ authority: `http://127.0.0.1:${grpc.port}` })
  const byGrpc = (data: Float32Array) =>
    Effect.map(
      rawCall(session, {
        chunks: [
          inferFrame({
            modelName: "first",
            inputs: [{ name: "X", datatype: "FP32", shape: [1n, BigInt(data.length)] }],
            rawInputContents: [new Uint8Array(data.buffer)],
          }),
        ],
      }),
      ({ status }) => status === "0",
    )
  const byHttp = (data: Float32Array) => {
    const inputs = [{ name: "X", datatype: "FP32", shape: [1, data.length], bytes: new Uint8Array(data.buffer) }]
    const wire = { modelName: "", modelVersion: "", id: "", parameters: {}, inputs, outputs: [] }
    const { headerLength, body } = encodeRequest(wire)
    return Effect.map(
      inferModel(http, "first", body, { "inference-header-content-length": headerLength }),
      ({ status }) => status === 200,
    )
  }
  return { kept, opened, waiting: () => model.life.pending(), infer: { gRPC: byGrpc, HTTP: byHttp } }
})

const cases = (["gRPC", "HTTP"] as const).flatMap((protocol) =>
  (["each", "batch", "requests"] as const).map((kind) => [protocol, kind] as const),
)

describe("a large request that waits behind others", () => {
  it.live.each(cases)("leaves its input to a handler that keeps it: %s, %s", ([protocol, kind]) =>
    Effect.gen(function* () {
      const { kept, opened, waiting, infer } = yield* serve(kind)
      const until = (condition: () => boolean) =>
        Effect.promise(async () => {
          while (!condition()) await nextTurn()
        })
      const blocking = yield* Effect.forkScoped(infer[protocol](new Float32Array(1)))
      yield* until(() => kept.length === 1)
      const numbers = Array.from({ length: count }, (_, number) => number)
      const all = yield* Effect.forkScoped(
        Effect.forEach(numbers, (number) => infer[protocol](picture(number)), { concurrency: "unbounded" }),
      )
      yield* until(() => waiting() === count)
      yield* Deferred.succeed(opened, undefined)
      assert.isTrue(yield* Fiber.join(blocking))
      assert.deepStrictEqual(
        yield* Fiber.join(all),
        numbers.map(() => true),
      )
      // Further messages use again the memory that was freed.
      for (const number of numbers.slice(0, more)) assert.isTrue(yield* infer[protocol](picture(number)))
      const rows = kept.flatMap(({ data }) =>
        Array.from({ length: Math.floor(data.length / length) }, (_, row) =>
          data.subarray(row * length, (row + 1) * length),
        ),
      )
      assert.strictEqual(rows.length, count + more)
      for (const row of rows) assert.strictEqual(Buffer.compare(bytesOf(row), bytesOf(picture(row[0] ?? -1))), 0)
      assert.deepStrictEqual(
        rows.map(([number]) => number).toSorted((one, other) => (one ?? 0) - (other ?? 0)),
        numbers.flatMap((number) => (number < more ? [number, number] : [number])),
      )
      if (kind === "batch") return
      // Those that were no longer young have memory of their own.
      const own = kept.slice(1, 1 + count).filter(({ bytes }) => bytes.byteLength === bytes.buffer.byteLength)
      assert.isAbove(own.length, 0)
      assert.isBelow(own.length, count)
    }),
  )
})

const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array) => new Uint8Array(buffer, byteOffset, byteLength)

describe("the memory of a message", () => {
  const large = 2 ** 20

  /** Memory behind which so many bytes of others have come. */
  const followed = (bytes: number) => {
    const memory = new ReceivedMemory(large, 0)
    for (let left = bytes; left > 0; left -= large) new ReceivedMemory(large, 0).free()
    return memory
  }
  const old = 32 * 2 ** 20

  it("is free behind a model that keeps no inputs", () => {
    const memory = new ReceivedMemory(large, 0)
    assert.isFalse(memory.isFree)
    memory.lend({ keepsInputs: false })
    assert.isTrue(memory.isFree)
  })

  it("is free behind a model that has copied the inputs, and not behind one that may have views", () => {
    const memory = followed(old)
    memory.lend({ keepsInputs: true, copiesInputs: true })
    assert.isFalse(memory.isFree)
    assert.isTrue(memory.isCopied())
    assert.isTrue(memory.isFree)
    const other = followed(old)
    other.lend({ keepsInputs: true })
    assert.deepStrictEqual([other.isCopied(), other.isFree], [true, false])
  })

  it("stays with the first answer, since a request may be executed again", () => {
    const memory = followed(old - large)
    memory.lend({ keepsInputs: true, copiesInputs: true })
    assert.isFalse(memory.isCopied())
    followed(old)
    assert.deepStrictEqual([memory.isCopied(), memory.isFree], [false, false])
  })

  it("is not old by its own size", () => {
    assert.isFalse(new ReceivedMemory(2 * old, 0).isCopied())
  })

  it("is left to the garbage collector if it is small", () => {
    const memory = new ReceivedMemory(1_000, 0)
    followed(old)
    assert.isFalse(memory.isCopied())
  })
})
