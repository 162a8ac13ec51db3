/** A model with a response cache, as callers and dashboards see it. */
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Model, Tensor } from "@nereid/core"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import * as PrometheusMetrics from "../metrics/PrometheusMetrics.fixture.ts"
import { parse } from "../metrics/PrometheusText.fixture.ts"
import { serve } from "../TwoPorts.fixture.ts"

const { modelConfig, modelInfer, modelStatistics } = GRPCInferenceService.method

const fields = { X: Tensor.FP32("n") }

class Cached extends Model.Service<Cached>()("cached", { inputs: fields, outputs: fields, maxBatchSize: 4 }) {}
class Plain extends Model.Service<Plain>()("plain", { inputs: fields, outputs: fields, maxBatchSize: 4 }) {}

const harness = Effect.gen(function* () {
  let calls = 0
  const handler = ({ X }: Model.Sample<typeof fields>) => {
    calls += 1
    return X.data[0] === 0 ? Effect.fail("zero") : Effect.succeed({ X })
  }
  const layers = Layer.mergeAll(Model.each(Cached, handler, { responseCache: true }), Model.each(Plain, handler))
  const services = yield* Effect.provideContext(Effect.all([Cached, Plain]), yield* Layer.build(layers))
  const models = services.map(({ model }) => model)
  const ports = yield* serve(models)
  const { text } = yield* PrometheusMetrics.make(ModelStore.of(models), { cpu: false, summaryLatencies: true })
  const infer = (data: ReadonlyArray<number>, id = "") => {
    const inputs = [{ name: "X", datatype: "FP32", shape: [1, data.length], data }]
    return ports.post("/v2/models/cached/infer", JSON.stringify({ id, inputs }))
  }
  return { ...ports, infer, calls: () => calls, families: () => parse(text()) }
})

it.live("ten identical requests, over both ports: one execution, nine hits", () =>
  Effect.gen(function* () {
    const { infer, call, get, calls, families } = yield* harness
    for (let turn = 0; turn < 9; turn++) {
      const { status, text } = yield* infer([1, 2], `${turn}`)
      expect([status, JSON.parse(text)]).toMatchObject([200, { id: `${turn}`, outputs: [{ data: [1, 2] }] }])
    }
    const contents = { fp32Contents: [1, 2] }
    const message = { modelName: "cached", inputs: [{ name: "X", datatype: "FP32", shape: [1n, 2n], contents }] }
    expect(yield* call(modelInfer, message)).toMatchObject({ response: { outputs: [{ name: "X", shape: [1n, 2n] }] } })
    expect(calls()).toBe(1)

    const { model_stats } = JSON.parse((yield* get("/v2/models/cached/stats")).text)
    expect(model_stats).toMatchObject([
      {
        inference_count: 10,
        execution_count: 1,
        inference_stats: {
          success: { count: 10 },
          queue: { count: 10 },
          compute_infer: { count: 1 },
          cache_hit: { count: 9, ns: expect.toSatisfy((ns: number) => ns > 0) },
          cache_miss: { count: 1, ns: expect.toSatisfy((ns: number) => ns > 0) },
        },
        batch_stats: [{ batch_size: 1 }],
      },
    ])
    expect(yield* call(modelStatistics, { name: "cached" })).toMatchObject({
      response: { modelStats: [{ inferenceStats: { cacheHit: { count: 9n }, cacheMiss: { count: 1n } } }] },
    })

    const samples = (name: string) =>
      (families().get(name)?.samples ?? []).map(({ labels, value }) => [labels["model"], value])
    expect(samples("nv_cache_num_hits_per_model")).toEqual([["cached", 9]])
    expect(samples("nv_cache_num_misses_per_model")).toEqual([["cached", 1]])
    expect(samples("nv_cache_hit_duration_per_model")).toEqual([["cached", expect.any(Number)]])
    expect(samples("nv_cache_miss_duration_per_model")).toEqual([["cached", expect.any(Number)]])
    const counted = (family: string) =>
      families()
        .get(family)
        ?.samples.flatMap(({ name, labels, value }) => (name === `${family}_count` ? [[labels["model"], value]] : []))
    expect(counted("nv_cache_hit_summary_per_model")).toEqual([["cached", 9]])
    expect(counted("nv_cache_miss_summary_per_model")).toEqual([["cached", 1]])
    expect(counted("nv_inference_request_summary_us")).toEqual([["plain", 0]])
    expect(counted("nv_inference_queue_summary_us")).toContainEqual(["cached", 10])
    expect(counted("nv_inference_compute_infer_summary_us")).toContainEqual(["cached", 1])
    expect(samples("nv_inference_request_success")).toContainEqual(["cached", 10])
    expect(samples("nv_inference_count")).toContainEqual(["cached", 1])
    expect(samples("nv_inference_exec_count")).toContainEqual(["cached", 1])
  }),
)

it.live("the caller's own id and class results are not part of what is kept; errors are executed each time", () =>
  Effect.gen(function* () {
    const { infer, post, calls } = yield* harness
    yield* infer([1, 2])
    const inputs = [{ name: "X", datatype: "FP32", shape: [1, 2], data: [1, 2] }]
    const outputs = [{ name: "X", parameters: { classification: 1 } }]
    const classes = (id: string) => post("/v2/models/cached/infer", JSON.stringify({ id, inputs, outputs }))
    expect(JSON.parse((yield* classes("a")).text)).toMatchObject({ id: "a", outputs: [{ data: ["2.000000:1"] }] })
    expect(JSON.parse((yield* classes("b")).text)).toMatchObject({ id: "b", outputs: [{ data: ["2.000000:1"] }] })
    expect(calls()).toBe(2)
    for (let turn = 0; turn < 2; turn++) expect((yield* infer([0])).status).toBe(500)
    expect(calls()).toBe(4)
  }),
)

it.live("the configuration shows it", () =>
  Effect.gen(function* () {
    const { get, call } = yield* harness
    expect(JSON.parse((yield* get("/v2/models/cached/config")).text)).toMatchObject({
      response_cache: { enable: true },
    })
    expect(JSON.parse((yield* get("/v2/models/plain/config")).text).response_cache ?? null).toBe(null)
    expect(yield* call(modelConfig, { name: "cached" })).toMatchObject({
      response: { config: { responseCache: { enable: true } } },
    })
  }),
)
