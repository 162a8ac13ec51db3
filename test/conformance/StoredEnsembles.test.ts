/** Failures of ensembles, as their statistics and metrics count them. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Connections } from "./Connections.ts"
import { counters } from "./Counters.ts"
import { encode as encodeGrpc } from "./GrpcEncoding.ts"
import { encode as encodeHttp } from "./HttpEncoding.ts"
import { tensor } from "./InferRequest.ts"

const failing = { model: "failing_ensemble", inputs: [tensor("X", "FP32", [1, 1], [1])] }

layer(Connections.layerWithRepository, { excludeTestServices: true, timeout: "30 seconds" })("ensembles", (it) => {
  it.effect("count failures under OTHER, and the failing model under BACKEND (C38)", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const http = yield* Effect.promise(() => connections.http("stored"))
      const grpc = yield* Effect.promise(() => connections.grpc("stored"))
      const overHttp = yield* Effect.promise(() => http.request(encodeHttp(failing, "HTTP JSON")))
      assert.strictEqual(overHttp.status, 500)
      const overGrpc = yield* Effect.promise(() => grpc.call({ chunks: [encodeGrpc(failing, "gRPC raw")] }))
      assert.strictEqual(overGrpc.code, 13)
      const reasons = async (model: string) => (await counters(connections, model, "stored")).reasons
      assert.deepStrictEqual(yield* Effect.promise(() => reasons("failing_ensemble")), [0, 0, 0, 2])
      assert.deepStrictEqual(yield* Effect.promise(() => reasons("fails_always")), [0, 0, 2, 0])
    }),
  )
})
