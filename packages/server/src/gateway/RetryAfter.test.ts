/** When a caller that is refused may try again, as each protocol says it. */
import { assert, expect, it } from "@effect/vitest"
import { Errors, Model, Tensor } from "@nereid/core"
import { Effect, Layer } from "effect"
import { inferFrame, rawCall, rawSession } from "../grpc/GrpcServer.fixture.ts"
import { inferModel } from "../http/HttpInfer.fixture.ts"
import * as Server from "../Server.ts"

/** Model that refuses requests, with a retry delay in milliseconds; without one if the input is negative. */
class Refusing extends Model.Service<Refusing>()("refusing", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { X: Tensor.scalar("INT32") },
}) {}

const refusing = Model.each(Refusing, ({ X }): Effect.Effect<never, Errors.InferenceError> => {
  if (X === 0) return Effect.fail(new Errors.InvalidRequest({ message: "no" }))
  return Effect.fail(new Errors.QueueFull({ message: "full", ...(X > 0 && { retryAfter: X }) }))
})

const serve = Effect.fnUntraced(function* (fastInference: boolean) {
  const free = { host: "127.0.0.1", port: 0 }
  const layer = Server.layer([Refusing], { http: free, grpc: free, metrics: false, fastInference })
  const { http, grpc } = yield* Effect.provide(Server.Server, yield* Layer.build(Layer.provide(layer, refusing)))
  assert(http !== undefined && grpc !== undefined)
  return { http, session: yield* rawSession({ authority: `http://127.0.0.1:${grpc.port}` }) }
})

/** A delay above one day is not sent. */
const tooMuch = 86_400_001

it.live("over HTTP: Retry-After in whole seconds; no header without an estimate", () =>
  Effect.gen(function* () {
    const { http } = yield* serve(true)
    const received: Array<unknown> = []
    for (const X of [1, 1000, 1001, 86_400_000, tooMuch, -1, 0]) {
      const inputs = [{ name: "X", datatype: "INT32", shape: [1], data: [X] }]
      const { status, headers } = yield* inferModel(http, "refusing", JSON.stringify({ inputs }))
      received.push([status, headers["retry-after"]])
    }
    expect(received).toEqual([
      [503, "1"],
      [503, "1"],
      [503, "2"],
      [503, "86400"],
      [503, undefined],
      [503, undefined],
      [400, undefined],
    ])
  }),
)

it.live.each([true, false])("over gRPC: the retry pushback in milliseconds; with fastInference: %s", (fast) =>
  Effect.gen(function* () {
    const { session } = yield* serve(fast)
    const received: Array<unknown> = []
    for (const X of [1, 1001, tooMuch, -1, 0]) {
      const inputs = [{ name: "X", datatype: "INT32", shape: [1n], contents: { intContents: [X] } }]
      const { status, fields } = yield* rawCall(session, { chunks: [inferFrame({ modelName: "refusing", inputs })] })
      received.push([status, fields["grpc-retry-pushback-ms"]])
    }
    expect(received).toEqual([
      ["14", "1"],
      ["14", "1001"],
      ["14", undefined],
      ["14", undefined],
      ["3", undefined],
    ])
  }),
)
