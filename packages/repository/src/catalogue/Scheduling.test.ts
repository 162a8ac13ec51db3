/** How requests wait and share batches by configuration, through the real ONNX Runtime. */
import { expect, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { Tensor } from "@nereid/core"
import { infer } from "@nereid/core/internal/running/CallableModel"
import { addSub, ragged } from "../../../../test/fixtures/onnx.ts"
import { repository } from "../../../../test/fixtures/repository.ts"
import { callModel, open } from "../Repository.fixture.ts"

/** The only model of a repository; or why it is not there. */
const only = Effect.fnUntraced(function* (file: Uint8Array, config: string) {
  const fixture = yield* repository
  fixture.write("m/1/model.onnx", file)
  fixture.write("m/config.pbtxt", config)
  const { registry, index } = yield* open(fixture)
  return { model: registry.models[0], reason: index()[0]?.reason }
})

const loaded = Effect.fnUntraced(function* (file: Uint8Array, config: string) {
  const { model, reason } = yield* only(file, config)
  if (model === undefined) throw new Error(reason ?? "there is no model")
  return model
})

const row = (...values: ReadonlyArray<number>) => Tensor.make("FP32", [1, values.length], Float32Array.from(values))

it.live("levels and queue policies are the model's", () =>
  Effect.gen(function* () {
    const model = yield* loaded(
      addSub("FP32", ["n", 2]),
      `max_batch_size: 4
      instance_group { count: 1 }
      dynamic_batching {
        priority_levels: 18446744073709551615 default_priority_level: 3
        default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 5 max_queue_size: 7 }
        priority_queue_policy { key: 2 value { allow_timeout_override: true } }
      }`,
    )
    expect(model.description.batching.queueing).toMatchObject({
      preserveOrdering: false,
      priorityLevels: 2n ** 64n - 1n,
      defaultPriorityLevel: 3n,
      defaultPolicy: { timeoutAction: "DELAY", maxQueueSize: 7 },
    })
    expect([...(model.description.batching.queueing?.policies.keys() ?? [])]).toEqual([2n])
    const parameters = { priority: 2n, timeout: 1n }
    // Over before an instance can have come for it.
    const late = infer(model.calls, {
      id: "",
      inputs: [row(1, 2), row(3, 4)],
      rows: 1,
      parameters,
      deadline: undefined,
    })
    expect(yield* Effect.flip(late)).toMatchObject({ _tag: "QueueTimeout", message: "Request timeout expired" })
    expect((yield* callModel(model, [row(1, 2), row(3, 4)])).map(({ data }) => [...data])).toEqual([
      [4, 6],
      [-2, -2],
    ])
  }),
)

it.live("nothing but a size, or the preferred size of all, is the plain queue", () =>
  Effect.gen(function* () {
    const model = yield* loaded(
      addSub("FP32", ["n", 2]),
      "max_batch_size: 4 dynamic_batching { default_queue_policy { max_queue_size: 7 } }",
    )
    expect(model.description.batching).toMatchObject({ queueing: undefined, maxQueueSize: 7, preferredBatchSizes: [4] })
  }),
)

const lines = (more: string) => `
  max_batch_size: 8
  dynamic_batching { preferred_batch_size: 3 max_queue_delay_microseconds: 5000000 }
  input { name: "X" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
  output { name: "Y" data_type: TYPE_FP32 dims: -1 }
  output { name: "END" data_type: TYPE_INT32 dims: 1 reshape { shape: [] } }
  ${more}`

const ends =
  'batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "ENDS" data_type: TYPE_INT32 source_input: "X" }'
const scatter = 'batch_output { target_name: "Y" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "X" }'

it.live("requests of different lengths are one run, and each has its own back", () =>
  Effect.gen(function* () {
    const model = yield* loaded(ragged(), lines(`${ends} ${scatter}`))
    const responses = yield* Effect.forEach([row(1, 2, 3), row(), row(4)], (x) => callModel(model, [x]), {
      concurrency: "unbounded",
    })
    expect(responses.map((outputs) => outputs.map(({ shape, data }) => [shape, [...data]]))).toEqual([
      [
        [
          [1, 3],
          [2, 4, 6],
        ],
        [[1, 1], [3]],
      ],
      [
        [[1, 0], []],
        [[1, 1], [3]],
      ],
      [
        [[1, 1], [8]],
        [[1, 1], [4]],
      ],
    ])
    expect(model.description.statistics.executionCount).toBe(1)
  }),
)

it.live.each([
  [
    "an input that is not made",
    scatter,
    "unable to load model 'm', the model expects 2 inputs but the model configuration specifies 1",
  ],
  ["a flat output that is not said to be", ends, "model 'm', tensor 'Y': the model expects 1 dimensions (shape [-1])"],
  ["a source that is not there", `${ends} ${scatter.replace('"X"', '"Q"')}`, "unknown source input name 'Q'"],
  [
    "counts as texts",
    `${ends.replace("TYPE_INT32", "TYPE_STRING")} ${scatter}`,
    "batch input data type must be TYPE_INT32 or TYPE_FP32",
  ],
])("%s makes the model unavailable", ([, config, reason]) =>
  Effect.gen(function* () {
    expect((yield* only(ragged(), lines(config ?? ""))).reason).toContain(reason)
  }),
)

it.live.each([
  ["no parameter", "", "arrival"],
  ["arrival", "arrival", "arrival"],
  ["independent", "independent", "independent"],
])("%s: the order of groups", ([, value, order]) =>
  Effect.gen(function* () {
    const model = yield* loaded(addSub("FP32", ["n", 2]), `max_batch_size: 4 dynamic_batching {} ${groupOrder(value)}`)
    expect(model.description.batching.groupOrder).toBe(order)
  }),
)

it.live("an unknown order of groups makes the model unavailable", () =>
  Effect.gen(function* () {
    const { reason } = yield* only(addSub("FP32", ["n", 2]), `max_batch_size: 4 ${groupOrder("shape")}`)
    expect(reason).toContain(
      "parameter 'batch_group_order' must be independent or arrival for m, but 'shape' was given",
    )
  }),
)

const latencyTarget = (value: string) =>
  `parameters { key: "latency_target_microseconds" value { string_value: "${value}" } }`

it.live("a parameter sets the latency target", () =>
  Effect.gen(function* () {
    const model = yield* loaded(
      addSub("FP32", ["n", 2]),
      `max_batch_size: 4 dynamic_batching {} ${latencyTarget("2500")}`,
    )
    expect(model.description.batching.latencyTarget).toEqual(Duration.micros(2500n))
    const without = yield* loaded(addSub("FP32", ["n", 2]), "max_batch_size: 4 dynamic_batching {}")
    expect(without.description.batching.latencyTarget).toBeUndefined()
  }),
)

it.live.each(["0", "-1", "soon", "1.5"])("a latency target of %s makes the model unavailable", (value) =>
  Effect.gen(function* () {
    const { reason } = yield* only(addSub("FP32", ["n", 2]), `max_batch_size: 4 ${latencyTarget(value)}`)
    expect(reason).toContain(
      `parameter 'latency_target_microseconds' must be an integer above 0 for m, but '${value}' was given`,
    )
  }),
)

const groupOrder = (value = "") =>
  value === "" ? "" : `parameters { key: "batch_group_order" value { string_value: "${value}" } }`
