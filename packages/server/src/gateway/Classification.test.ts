/** Class results over both protocols. */
import { assert, it } from "@effect/vitest"
import { setImmediate as nextTurn } from "node:timers/promises"
import { Effect, Fiber, Layer, Result } from "effect"
import { Model, Tensor } from "@nereid/core"
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { decodeResponse } from "@nereid/core/internal/codec/json/BinaryExtension"
import { encodeElements } from "@nereid/core/internal/tensor/TypedTensor"
import { addSub, clients, modelInfer, serve as serveGrpc } from "../grpc/GrpcServer.fixture.ts"
import * as Gateway from "./Gateway.ts"
import { inferModel, json, serve } from "../http/HttpInfer.fixture.ts"

class Scores extends Model.Service<Scores>()("scores", {
  inputs: { X: Tensor.FP32("n") },
  outputs: { SCORE: Tensor.FP32("n"), TEXT: Tensor.BYTES(1), CLASS: Tensor.labels(["cat", "dog"]) },
  maxBatchSize: 4,
}) {}

class Plain extends Model.Service<Plain>()("plain", {
  inputs: { X: Tensor.FP32("n") },
  outputs: { Y: Tensor.FP32("n") },
}) {}

/** As many elements as classes can be requested of, in ascending order. */
class Large extends Model.Service<Large>()("large", {
  inputs: { X: Tensor.INT32(1) },
  outputs: { Y: Tensor.INT32("n") },
}) {}

const length = 1_000_000

const ascending = Tensor.make(
  "INT32",
  [length],
  Int32Array.from({ length }, (_, index) => index),
)

const LargeLive = Model.each(Large, () => Effect.succeed({ Y: ascending }))

const models = Layer.mergeAll(
  Model.each(Scores, ({ X }) =>
    Effect.succeed({ SCORE: X, TEXT: Tensor.make("BYTES", [1], [new Uint8Array()]), CLASS: "dog" as const }),
  ),
  Model.each(Plain, ({ X }) => Effect.succeed({ Y: X })),
)

const body = (shape: string, outputs: string) =>
  `{"inputs":[{"name":"X","shape":${shape},"datatype":"FP32","data":[1,3,2,0.5,0.25,4]}],"outputs":[${outputs}]}`

const output = (name: string, classification: number | string, others = "") =>
  `{"name":"${name}","parameters":{"classification":${classification}${others}}}`

const texts = (...values: ReadonlyArray<string>) => encodeElements(values.map((value) => Buffer.from(value)))

it.live("HTTP: the highest of each row, in the document or as binary data", () =>
  Effect.gen(function* () {
    const server = yield* serve(models, [Scores, Plain])
    const response = yield* inferModel(server, "scores", body("[2,3]", output("SCORE", 2)))
    const tensor = { name: "SCORE", datatype: "BYTES", shape: [2, 2] }
    const data = ["3.000000:1", "2.000000:2", "4.000000:2", "0.500000:0"]
    assert.deepStrictEqual(json(response), {
      model_name: "scores",
      model_version: "1",
      outputs: [{ ...tensor, data }],
    })
    const binary = yield* inferModel(server, "scores", body("[2,3]", output("SCORE", 2, ',"binary_data":true')))
    const length = Number(binary.headers["inference-header-content-length"])
    const { outputs } = Result.getOrThrow(decodeResponse(new Uint8Array(binary.body), length))
    assert.deepStrictEqual(outputs, [{ ...tensor, bytes: texts(...data) }])
    // Without a batch dimension all elements are one row; more than all are all.
    const plain = yield* inferModel(server, "plain", body("[6]", output("Y", 99)))
    assert.include(plain.body.toString(), '"shape":[6],"data":["4.000000:5","3.000000:1"')
  }),
)

it.live("HTTP: labels, and other outputs as they are", () =>
  Effect.gen(function* () {
    const server = yield* serve(models, [Scores])
    const response = yield* inferModel(server, "scores", body("[1,6]", `${output("CLASS", -1)},{"name":"SCORE"}`))
    assert.include(
      response.body.toString(),
      '"outputs":[{"name":"CLASS","datatype":"BYTES","shape":[1,1],"data":["1:0:dog"]},' +
        '{"name":"SCORE","datatype":"FP32","shape":[1,6],"data":[1,3,2,0.5,0.25,4]}]',
    )
  }),
)

it.live("HTTP: what has no class results", () =>
  Effect.gen(function* () {
    const server = yield* serve(models, [Scores])
    const unsupported = yield* inferModel(server, "scores", body("[1,6]", output("TEXT", 1)))
    const error = "class result not available for output due to unsupported type 'BYTES'"
    assert.deepStrictEqual([unsupported.status, json(unsupported)], [400, { error }])
    const text = yield* inferModel(server, "scores", body("[1,6]", output("SCORE", '"1"')))
    assert.deepStrictEqual([text.status, text.headers["nereid-error"]], [400, "MalformedRequest"])
  }),
)

for (const [name, client] of Object.entries(clients)) {
  it.live(`${name}: the highest of each row`, () =>
    Effect.gen(function* () {
      const server = yield* serveGrpc()
      const call = yield* client(server)
      const requesting = (value: bigint | string) => {
        const parameterChoice =
          typeof value === "bigint" ? { case: "int64Param" as const, value } : { case: "stringParam" as const, value }
        return call(
          modelInfer,
          addSub({ outputs: [{ name: "SUM", parameters: { classification: { parameterChoice } } }] }),
        )
      }
      const outcome = yield* requesting(3n)
      assert("response" in outcome)
      const [sum] = outcome.response.outputs
      assert.deepStrictEqual([sum?.datatype, sum?.shape], ["BYTES", [1n, 3n]])
      assert.deepStrictEqual(
        outcome.response.rawOutputContents.map((bytes) => new Uint8Array(bytes)),
        [texts("5:3", "4:2", "3:1")],
      )
      assert.deepStrictEqual(yield* requesting("3"), {
        code: 3,
        message: "invalid value type for 'classification' parameter, expected int64_param",
        tag: "InvalidRequest",
      })
    }),
  )
}

const largeBody = (count: number) =>
  `{"inputs":[{"name":"X","shape":[1],"datatype":"INT32","data":[0]}],` +
  `"outputs":[{"name":"Y","parameters":{"classification":${count},"binary_data":true}}]}`

it.live("the server answers other requests while it makes classes of a large output", () =>
  Effect.gen(function* () {
    const server = yield* serve(LargeLive, [Large])
    const classes = yield* Effect.forkChild(inferModel(server, "large", largeBody(length)))
    let answered = 0
    while (classes.pollUnsafe() === undefined) {
      const live = yield* Effect.promise(() => fetch(`http://127.0.0.1:${server.port}/v2/health/live`))
      assert.strictEqual(live.status, 200)
      answered += 1
    }
    const response = yield* Fiber.join(classes)
    assert.strictEqual(response.status, 200)
    assert.include(response.body.subarray(-40).toString(), "0:0")
    assert.isAbove(answered, 20)
  }),
)

it.live("a cancelled request gives its memory back while its classes are made, and gets no response", () =>
  Effect.gen(function* () {
    const { model } = yield* Large
    const store = ModelStore.of([model])
    const gateway = Gateway.make(store, { id: "nereid", version: "0" })
    const outcomes: Array<string> = []
    const inputs = [{ name: "X", datatype: "INT32", shape: [1], bytes: new Uint8Array(4) } as const]
    const wire = { modelName: "large", modelVersion: "", id: "", parameters: {}, inputs }
    const infer = (name: string, classification: number, done = (): void => {}) =>
      gateway.infer({ ...wire, outputs: [{ name: "Y", binary: true, classification }] }, undefined, () => {
        outcomes.push(name)
        done()
      })
    const cancelled = infer("cancelled", length)
    while (model.description.statistics.success.count === 0) yield* Effect.promise(nextTurn)
    assert.strictEqual(gateway.inFlight(), 1)
    cancelled()
    assert.strictEqual(gateway.inFlight(), 0)
    yield* Effect.promise(() => new Promise<void>((resolve) => infer("other", 1000, resolve)))
    assert.deepStrictEqual(outcomes, ["other"])
  }).pipe(Effect.provide(LargeLive)),
)
