/** Model statistics, read over both protocols from real sockets. */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Queue, Stream } from "effect"
import { Model, Tensor } from "@nereid/core"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { serve } from "../TwoPorts.fixture.ts"

const { modelStatistics } = GRPCInferenceService.method

class Gated extends Model.Service<Gated>()("gated", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { X: Tensor.scalar("INT32") },
  maxBatchSize: 8,
}) {}

/** Model with the name of the statistics route. */
class Stats extends Model.Service<Stats>()("stats", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { X: Tensor.scalar("INT32") },
}) {}

class Stats2 extends Model.Service<Stats2>()("stats", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { X: Tensor.scalar("INT32") },
  version: 2,
}) {}

/** Counts to its number, or fails there where that is negative. */
class Counting extends Model.Service<Counting>()("counting", {
  inputs: { TO: Tensor.scalar("INT32") },
  outputs: { N: Tensor.scalar("INT32") },
}) {}

const harness = Effect.gen(function* () {
  const started = yield* Queue.unbounded<void>()
  const open = yield* Deferred.make<void>()
  const refuseNegative = ({ X }: { readonly X: number }) => (X < 0 ? Effect.fail("negative") : Effect.succeed({ X }))
  const gated = Model.batch(Gated, ({ X }) =>
    Queue.offer(started, undefined).pipe(Effect.andThen(Deferred.await(open)), Effect.as({ X })),
  )
  const model = yield* Effect.provideContext(Gated, yield* Layer.build(gated))
  const stats = yield* Effect.provideContext(Stats, yield* Layer.build(Model.each(Stats, refuseNegative)))
  const stats2 = yield* Effect.provideContext(Stats2, yield* Layer.build(Model.each(Stats2, refuseNegative)))
  const ports = yield* serve([model, stats, stats2].map((inference) => inference.model))
  return { ...ports, gated: model, stats, started, open }
})

const none = { count: 0, ns: 0 }

/** The statistics of a model that has done nothing. */
const idle = (name: string, version: string) => ({
  name,
  version,
  last_inference: 0,
  inference_count: 0,
  execution_count: 0,
  inference_stats: {
    success: none,
    fail: none,
    queue: none,
    compute_input: none,
    compute_infer: none,
    compute_output: none,
    cache_hit: none,
    cache_miss: none,
  },
  response_stats: {},
  batch_stats: [],
  memory_usage: [],
})

describe("which models", () => {
  it.live("all, all versions of one, or one version, in the protocol's order of keys", () =>
    Effect.gen(function* () {
      const { get, call } = yield* harness
      const [gated, stats, stats2] = [idle("gated", "1"), idle("stats", "1"), idle("stats", "2")]
      for (const [path, name, version, expected] of [
        ["/v2/models/stats", "", "", [gated, stats, stats2]],
        ["/v2/models/gated/stats", "gated", "", [gated]],
        ["/v2/models/stats/stats", "stats", "", [stats, stats2]],
        ["/v2/models/stats/versions/2/stats", "stats", "2", [stats2]],
      ] as const) {
        const { status, text } = yield* get(path)
        expect([status, text], path).toEqual([200, JSON.stringify({ model_stats: expected })])
        const names = expected.map((model) => ({ name: model.name, version: model.version, inferenceCount: 0n }))
        expect(yield* call(modelStatistics, { name, version })).toMatchObject({ response: { modelStats: names } })
      }
      // The metadata is still available by version.
      expect((yield* get("/v2/models/stats/versions/1")).text).toContain('{"name":"stats","versions":["1"],')
    }),
  )

  it.live("an unknown model is an invalid request", () =>
    Effect.gen(function* () {
      const { get, call } = yield* harness
      for (const [path, name, version, message] of [
        ["/v2/models/nobody/stats", "nobody", "", "requested model 'nobody' is not available"],
        ["/v2/models/nobody/versions/1/stats", "nobody", "1", "requested model 'nobody' is not available"],
        [
          "/v2/models/gated/versions/9/stats",
          "gated",
          "9",
          "requested model version is not available for model 'gated'",
        ],
      ] as const) {
        const text = JSON.stringify({ error: message })
        expect(yield* get(path)).toEqual({ status: 400, tag: "InvalidRequest", text })
        expect(yield* call(modelStatistics, { name, version })).toEqual({ code: 3, message, tag: "InvalidRequest" })
      }
      expect((yield* get("/v2/models/gated/versions/x/stats")).status).toBe(404)
      expect(yield* call(modelStatistics, { name: "gated", version: "x" })).toMatchObject({
        code: 3,
        message: expect.stringContaining("failed to get model version from specified version string 'x'"),
      })
    }),
  )
})

describe("counts", () => {
  it.live("1 alone, then 1+2 in one batch: 3 requests, 4 rows, 2 executions", () =>
    Effect.gen(function* () {
      const { get, call, gated, started, open } = yield* harness
      const first = yield* Effect.forkChild(gated.infer({ X: 1 }), { startImmediately: true })
      yield* Queue.take(started)
      const second = yield* Effect.forkChild(gated.infer({ X: 2 }), { startImmediately: true })
      const two = Tensor.make("INT32", [2, 1], Int32Array.of(3, 4))
      const third = yield* Effect.forkChild(gated.inferBatch({ X: two }), { startImmediately: true })
      expect(gated.model.life.pending()).toBe(2)
      yield* Deferred.succeed(open, undefined)
      yield* Fiber.joinAll([first, second, third])

      const took = (count: number) => ({ count, ns: expect.toSatisfy(Number.isSafeInteger) })
      const compute = (count: number) => ({
        compute_input: took(count),
        compute_infer: took(count),
        compute_output: took(count),
      })
      const { text } = yield* get("/v2/models/gated/stats")
      expect(JSON.parse(text)).toEqual({
        model_stats: [
          {
            ...idle("gated", "1"),
            last_inference: expect.toSatisfy((millis: number) => Math.abs(Date.now() - millis) < 60_000),
            inference_count: 4,
            execution_count: 2,
            inference_stats: {
              success: took(3),
              fail: none,
              queue: took(3),
              ...compute(3),
              cache_hit: none,
              cache_miss: none,
            },
            batch_stats: [
              { batch_size: 1, ...compute(1) },
              { batch_size: 3, ...compute(1) },
            ],
          },
        ],
      })
      expect(yield* call(modelStatistics, { name: "gated" })).toMatchObject({
        response: {
          modelStats: [
            {
              inferenceCount: 4n,
              executionCount: 2n,
              inferenceStats: { success: { count: 3n, ns: expect.any(BigInt) }, fail: { count: 0n, ns: 0n } },
              batchStats: [
                { batchSize: 1n, computeInfer: { count: 1n } },
                { batchSize: 3n, computeInfer: { count: 1n } },
              ],
            },
          ],
        },
      })
    }),
  )

  it.live("a failed request shows in fail and nowhere else", () =>
    Effect.gen(function* () {
      const { get, call, stats } = yield* harness
      yield* Effect.flip(stats.infer({ X: -1 }))
      const failed = JSON.parse((yield* get("/v2/models/stats/versions/1/stats")).text)
      const expected = idle("stats", "1")
      expect(failed.model_stats).toEqual([
        { ...expected, inference_stats: { ...expected.inference_stats, fail: { count: 1, ns: expect.any(Number) } } },
      ])
      yield* stats.infer({ X: 1 })
      expect(yield* call(modelStatistics, { name: "stats", version: "1" })).toMatchObject({
        response: {
          modelStats: [
            {
              inferenceCount: 1n,
              executionCount: 1n,
              inferenceStats: { success: { count: 1n }, fail: { count: 1n }, queue: { count: 1n } },
            },
          ],
        },
      })
    }),
  )

  it.live("responses of a decoupled model, each by its place, and no batches of none", () =>
    Effect.gen(function* () {
      const counting = Model.stream(Counting, ({ TO }) =>
        Stream.concat(
          Stream.fromIterable(Array.from({ length: Math.abs(TO) }, (_, N) => ({ N }))),
          TO < 0 ? Stream.fail("negative") : Stream.empty,
        ),
      )
      const { model } = yield* Effect.provideContext(Counting, yield* Layer.build(counting))
      const { get, post, call } = yield* serve([model])
      for (const TO of [2, 0, -1]) yield* post("/v2/models/counting/generate_stream", JSON.stringify({ TO }))
      const statistics = JSON.parse((yield* get("/v2/models/counting/stats")).text)
      const took = (count: number) => (count === 0 ? none : { count, ns: expect.toSatisfy(Number.isSafeInteger) })
      const response = (success: number, fail: number, empty: number) => ({
        compute_infer: took(success + fail + empty),
        compute_output: took(success),
        success: took(success),
        fail: took(fail),
        empty_response: took(empty),
        cancel: none,
      })
      expect(statistics).toEqual({
        model_stats: [
          {
            ...idle("counting", "1"),
            last_inference: expect.any(Number),
            inference_count: 2,
            execution_count: 2,
            inference_stats: expect.objectContaining({ success: took(2), fail: took(1) }),
            response_stats: { "0": response(2, 0, 1), "1": response(1, 1, 0), "2": response(0, 0, 1) },
            batch_stats: [expect.objectContaining({ batch_size: 1, compute_infer: took(2) })],
          },
        ],
      })
      expect(Object.keys(statistics.model_stats[0])).toEqual(Object.keys(idle("counting", "1")))
      const first = { success: { count: 2n }, fail: { count: 0n }, emptyResponse: { count: 1n }, cancel: { count: 0n } }
      expect(yield* call(modelStatistics, { name: "counting" })).toMatchObject({
        response: { modelStats: [{ responseStats: { 0: first, 1: { success: { count: 1n }, fail: { count: 1n } } } }] },
      })
    }),
  )
})
