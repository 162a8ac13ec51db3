/** Memory of large gRPC messages: alignment of the tensor, and when the memory is released. */
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { ModelVersion } from "@nereid/core/internal/lifecycle/ModelVersion"
import { fromBinary } from "@bufbuild/protobuf"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { Model, Tensor } from "@nereid/core"
import * as Gateway from "../gateway/Gateway.ts"
import { inferFrame, modelInfer, rawCall, rawSession } from "./GrpcServer.fixture.ts"
import * as GrpcServer from "./GrpcServer.ts"

class Mirror extends Model.Service<Mirror>()("mirror", {
  inputs: { X: Tensor.FP32("n") },
  outputs: { Y: Tensor.FP32("n") },
}) {}

const picture = Float32Array.from({ length: 150_000 }, (_, index) => index / 8)

/** Server of a handler that keeps its input and returns it, after `answered`. */
const served = Effect.fnUntraced(function* (
  options: Pick<Model.HandlerOptions, "keepsInputs"> = {},
  answered: Effect.Effect<void> = Effect.void,
) {
  const kept: Array<Tensor.Tensor<"FP32">> = []
  const layer = Model.each(
    Mirror,
    ({ X }) => {
      kept.push(X)
      const [first = 0] = X.data
      return first < 0 ? Effect.fail(new Error("negative")) : Effect.as(answered, { Y: X })
    },
    options,
  )
  const { model } = yield* Effect.provideContext(Mirror, yield* Layer.build(layer))
  const store = ModelStore.of([model])
  const gateway = Gateway.make(store, { id: "nereid", version: "0" })
  const server = yield* GrpcServer.make(gateway, { host: "127.0.0.1", port: 0, stopTimeoutMillis: 1_000 })
  const session = yield* rawSession({ authority: `http://127.0.0.1:${server.port}` })
  /** Request with an id of this length, which moves the tensor within the message. */
  const infer = (data: Float32Array, characters = 0) =>
    rawCall(session, {
      chunks: [
        inferFrame({
          modelName: "mirror",
          id: "i".repeat(characters),
          inputs: [{ name: "X", datatype: "FP32", shape: [BigInt(data.length)] }],
          rawInputContents: [new Uint8Array(data.buffer)],
        }),
      ],
    })
  return { kept, infer, store }
})

const isPicture = (body: Uint8Array): boolean => {
  const [output] = fromBinary(modelInfer.output, body.subarray(5)).rawOutputContents
  return output !== undefined && Buffer.compare(output, new Uint8Array(picture.buffer)) === 0
}

describe("the memory of a large message", () => {
  it.live("is a handler's to keep, who can read its tensor without a copy, wherever it stands", () =>
    Effect.gen(function* () {
      const { kept, infer } = yield* served()
      for (let characters = 0; characters < 8; characters++) {
        assert(isPicture((yield* infer(picture, characters)).body))
      }
      for (const { bytes, data } of kept) {
        assert.strictEqual(data.buffer, bytes.buffer)
        assert.strictEqual(Buffer.compare(bytes, new Uint8Array(picture.buffer)), 0)
      }
    }),
  )

  it.live("is given back where its handler keeps none, once the answer has been made of it", () =>
    Effect.gen(function* () {
      const { kept, infer } = yield* served({ keepsInputs: false })
      for (let time = 0; time < 3; time++) assert(isPicture((yield* infer(picture)).body))
      for (const { bytes } of kept) assert.strictEqual(bytes.length, 0)
    }),
  )

  it.live("stays with a handler that keeps it, where its model is replaced by one that does not", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const answered = yield* Deferred.make<void>()
      const { kept, infer, store } = yield* served(
        {},
        Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(answered)),
      )
      const running = yield* Effect.forkScoped(infer(picture))
      yield* Deferred.await(begun)
      const other = Model.each(Mirror, ({ X }) => ({ Y: X }), { keepsInputs: false })
      const { model } = yield* Effect.provideContext(Mirror, yield* Layer.build(other))
      store.serve("mirror", [ModelVersion.ready(model)])
      yield* Deferred.succeed(answered, undefined)
      assert(isPicture((yield* Fiber.join(running)).body))
      assert.deepStrictEqual(
        kept.map(({ bytes }) => bytes.length),
        [4 * picture.length],
      )
    }),
  )

  it.live("stays where the request has failed, and where it is small", () =>
    Effect.gen(function* () {
      const { kept, infer } = yield* served({ keepsInputs: false })
      assert.strictEqual((yield* infer(picture.map((value) => -1 - value))).status, "13")
      assert.strictEqual((yield* infer(picture.slice(0, 100))).status, "0")
      assert.deepStrictEqual(
        kept.map(({ bytes }) => bytes.length),
        [4 * picture.length, 400],
      )
    }),
  )
})
