/** Configuration of models declared in code, read over both protocols from real sockets. */
import { altered } from "../../../../test/fixtures/runningModel.ts"
import { expect, it } from "@effect/vitest"
import { create } from "@bufbuild/protobuf"
import { Effect, Layer } from "effect"
import { Model, Tensor } from "@nereid/core"
import * as ConfigurationMessage from "@nereid/core/internal/configuration/ConfigurationMessage"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { ModelConfigSchema } from "@nereid/protocol/model_config"
import { print } from "@nereid/core/internal/codec/protobuf/MessageJson"
import * as ModelConfiguration from "./ModelConfiguration.ts"
import { serve } from "../TwoPorts.fixture.ts"

const { modelConfig, serverMetadata } = GRPCInferenceService.method

class Batching extends Model.Service<Batching>()("batching", {
  inputs: { TEXT: Tensor.BYTES("n"), IMAGE: Tensor.UINT8(-1, -1, 3), LONG: Tensor.optional(Tensor.INT64(2)) },
  outputs: { SCORE: Tensor.scalar("FP32"), ROW: Tensor.FP64() },
  maxBatchSize: 16,
}) {}

class Preferring extends Model.Service<Preferring>()("preferring", {
  inputs: { X: Tensor.BF16(1) },
  outputs: { X: Tensor.BF16(1) },
  maxBatchSize: 8,
  batching: { maxQueueDelay: "2 millis", preferredBatchSizes: [4, 8], maxQueueSize: 7 },
}) {}

class Single extends Model.Service<Single>()("single", {
  inputs: { X: Tensor.BOOL(1) },
  outputs: { X: Tensor.BOOL(1) },
  version: 3,
}) {}

/** Without a batch dimension: its queue is one all the same. */
class Levels extends Model.Service<Levels>()("levels", {
  inputs: { X: Tensor.BOOL(1) },
  outputs: { X: Tensor.BOOL(1) },
  batching: {
    maxQueueSize: 9,
    defaultTimeout: "1500 micros",
    timeoutAction: "DELAY",
    priorities: {
      levels: 12,
      default: 3,
      policies: { 2: { allowTimeoutOverride: true }, 3: { maxQueueSize: 5, defaultTimeout: "1 second" } },
    },
  },
}) {}

class Ordered extends Model.Service<Ordered>()("ordered", {
  inputs: { X: Tensor.BOOL(1) },
  outputs: { X: Tensor.BOOL(1) },
  maxBatchSize: 2,
  batching: { preserveOrdering: true },
}) {}

const harness = Effect.gen(function* () {
  const layers = Layer.mergeAll(
    Model.each(Batching, () => Effect.succeed({ SCORE: 0, ROW: Tensor.make("FP64", [], Float64Array.of(0)) }), {
      instances: 2,
    }),
    Model.each(Preferring, ({ X }) => Effect.succeed({ X })),
    Model.each(Single, ({ X }) => Effect.succeed({ X })),
    Model.each(Levels, ({ X }) => Effect.succeed({ X })),
    Model.each(Ordered, ({ X }) => Effect.succeed({ X })),
  )
  const services = yield* Layer.build(layers)
  const all = yield* Effect.all([Batching, Preferring, Single, Levels, Ordered]).pipe(Effect.provideContext(services))
  const [, preferring] = all
  const ports = yield* serve(all.map(({ model }) => model))
  return { ...ports, preferring: preferring.model }
})

const input = (name: string, data_type: string, dims: ReadonlyArray<number>, optional = false) => ({
  name,
  data_type,
  format: "FORMAT_NONE",
  dims,
  is_shape_tensor: false,
  allow_ragged_batch: false,
  optional,
  is_non_linear_format_io: false,
})

const output = (name: string, data_type: string, dims: ReadonlyArray<number>) => ({
  name,
  data_type,
  dims,
  label_filename: "",
  is_shape_tensor: false,
  is_non_linear_format_io: false,
})

const group = (name: string, count: number) => ({
  name,
  count,
  gpus: [],
  kind: "KIND_CPU",
  profile: [],
  passive: false,
  secondary_devices: [],
  host_policy: "",
})

const common = {
  platform: "nereid",
  version_policy: { latest: { num_versions: 1 } },
  optimization: {
    priority: "PRIORITY_DEFAULT",
    input_pinned_memory: { enable: true },
    output_pinned_memory: { enable: true },
    gather_kernel_buffer_threshold: 0,
    eager_batching: false,
  },
  default_model_filename: "",
  cc_model_filenames: {},
  metric_tags: {},
  parameters: {},
  model_warmup: [],
  backend: "nereid",
  batch_input: [],
  batch_output: [],
  runtime: "",
}

it.live("a model that batches: everything at its default is filled in and printed", () =>
  Effect.gen(function* () {
    const { get } = yield* harness
    for (const path of ["/v2/models/batching/config", "/v2/models/batching/versions/1/config"]) {
      const { status, text } = yield* get(path)
      expect(status).toBe(200)
      expect(JSON.parse(text)).toEqual({
        ...common,
        name: "batching",
        max_batch_size: 16,
        input: [
          input("TEXT", "TYPE_STRING", [-1]),
          input("IMAGE", "TYPE_UINT8", [-1, -1, 3]),
          input("LONG", "TYPE_INT64", [2], true),
        ],
        output: [output("SCORE", "TYPE_FP32", [1]), output("ROW", "TYPE_FP64", [])],
        instance_group: [group("batching_0", 2)],
        dynamic_batching: {
          preferred_batch_size: [16],
          max_queue_delay_microseconds: 0,
          preserve_ordering: false,
          priority_levels: 0,
          default_priority_level: 0,
          default_queue_policy: {
            timeout_action: "REJECT",
            default_timeout_microseconds: 0,
            allow_timeout_override: false,
            max_queue_size: 1024,
          },
          priority_queue_policy: {},
        },
      })
    }
  }),
)

it.live("a model that does not batch has no dynamic_batching", () =>
  Effect.gen(function* () {
    const { get } = yield* harness
    expect(JSON.parse((yield* get("/v2/models/single/config")).text)).toEqual({
      ...common,
      name: "single",
      max_batch_size: 0,
      input: [input("X", "TYPE_BOOL", [1])],
      output: [output("X", "TYPE_BOOL", [1])],
      instance_group: [group("single", 1)],
    })
  }),
)

it.live("levels and policies are printed as they are set", () =>
  Effect.gen(function* () {
    const { get } = yield* harness
    const policy = (action: string, timeout: number, override: boolean, size: number) =>
      `{"timeout_action":"${action}","default_timeout_microseconds":${timeout},"allow_timeout_override":${override},` +
      `"max_queue_size":${size}}`
    expect((yield* get("/v2/models/levels/config")).text).toContain(
      '"dynamic_batching":{"preferred_batch_size":[],"max_queue_delay_microseconds":0,"preserve_ordering":false,' +
        '"priority_levels":12,"default_priority_level":3,' +
        `"default_queue_policy":${policy("DELAY", 1500, false, 9)},` +
        `"priority_queue_policy":{"2":${policy("REJECT", 0, true, 1024)},"3":${policy("REJECT", 1_000_000, false, 5)}}}`,
    )
    expect((yield* get("/v2/models/ordered/config")).text).toContain(
      '"preferred_batch_size":[2],"max_queue_delay_microseconds":0,"preserve_ordering":true,',
    )
  }),
)

it.live("gRPC gives the message that HTTP prints", () =>
  Effect.gen(function* () {
    const { get, call } = yield* harness
    for (const name of ["batching", "preferring", "single", "levels", "ordered"]) {
      const outcome = yield* call(modelConfig, { name })
      const config = "response" in outcome ? outcome.response.config : undefined
      expect(config).toBeDefined()
      if (config === undefined) continue
      expect((yield* get(`/v2/models/${name}/config`)).text).toBe(JSON.stringify(ModelConfiguration.json(config)))
    }
    expect(yield* call(modelConfig, { name: "preferring", version: "1" })).toMatchObject({
      response: {
        config: {
          input: [{ dataType: 14 }],
          schedulingChoice: {
            case: "dynamicBatching",
            value: {
              preferredBatchSize: [4, 8],
              maxQueueDelayMicroseconds: 2000n,
              defaultQueuePolicy: { maxQueueSize: 7 },
            },
          },
        },
      },
    })
  }),
)

it.live("an unknown model or version is not found", () =>
  Effect.gen(function* () {
    const { get, call } = yield* harness
    for (const [path, name, version, problem] of [
      ["/v2/models/nobody/config", "nobody", "", "'nobody' is not found"],
      ["/v2/models/single/versions/1/config", "single", "1", "'single' version 1 is not found"],
    ] as const) {
      const message = `Request for unknown model: ${problem}`
      expect(yield* get(path)).toEqual({ status: 404, tag: "ModelNotFound", text: JSON.stringify({ error: message }) })
      expect(yield* call(modelConfig, { name, version })).toEqual({ code: 5, message, tag: "ModelNotFound" })
    }
  }),
)

it.live("instances in groups, as they were declared", () =>
  Effect.gen(function* () {
    class Grouped extends Model.Service<Grouped>()("grouped", {
      inputs: { X: Tensor.FP32(1) },
      outputs: { X: Tensor.FP32(1) },
    }) {}
    const instances = [{ count: 2 }, { kind: "GPU", gpus: [0, 1], count: 2 }, Layer.empty] as const
    const layer = Model.each(Grouped, ({ X }) => ({ X }), { instances })
    const { model } = yield* Effect.provideContext(Grouped, yield* Layer.build(layer))
    const { get, call } = yield* serve([model])
    const groups = [
      { name: "grouped_0", kind: "KIND_CPU", count: 2 },
      { name: "grouped_1", kind: "KIND_GPU", count: 2, gpus: [0, 1] },
      { name: "grouped_2", kind: "KIND_CPU", count: 1 },
    ]
    expect(JSON.parse((yield* get("/v2/models/grouped/config")).text).instance_group).toMatchObject(groups)
    expect(yield* call(modelConfig, { name: "grouped" })).toMatchObject({
      response: { config: { instanceGroup: groups.map(({ name, count }) => ({ name, count })) } },
    })
  }),
)

it.live("a file's format follows its backend; a model that runs elsewhere has no instances here", () =>
  Effect.gen(function* () {
    const { preferring } = yield* harness
    const onnx = ConfigurationMessage.make(altered(preferring, { description: { platform: "onnxruntime_onnx" } }))
    expect(onnx).toMatchObject({ platform: "onnxruntime_onnx", backend: "onnxruntime" })
    expect(
      ConfigurationMessage.make(altered(preferring, { life: { instanceGroups: () => [] } })).instanceGroup,
    ).toEqual([])
  }),
)

it.live("reports ragged inputs and their batch inputs as configured", () =>
  Effect.gen(function* () {
    const { preferring } = yield* harness
    const source = { kind: "BATCH_ACCUMULATED_ELEMENT_COUNT", datatype: "INT32", source: 0 } as const
    const flat = { inputs: new Set([0]), batchInputs: [{ name: "END", ...source }], batchOutputs: new Map([[0, 0]]) }
    expect(
      ModelConfiguration.json(ConfigurationMessage.make(altered(preferring, { description: { flat } }))),
    ).toMatchObject({
      input: [{ name: "X", allow_ragged_batch: true }],
      batch_input: [
        {
          kind: "BATCH_ACCUMULATED_ELEMENT_COUNT",
          target_name: ["END"],
          data_type: "TYPE_INT32",
          source_input: ["X"],
        },
      ],
      batch_output: [{ target_name: ["X"], kind: "BATCH_SCATTER_WITH_INPUT_SHAPE", source_input: ["X"] }],
    })
  }),
)

it.live("the server metadata lists both extensions", () =>
  Effect.gen(function* () {
    const { get, call } = yield* harness
    const extensions = expect.arrayContaining(["model_configuration", "statistics"])
    expect(JSON.parse((yield* get("/v2")).text)).toMatchObject({ extensions })
    expect(yield* call(serverMetadata, {})).toMatchObject({ response: { extensions } })
  }),
)

it("64-bit integers are numbers wherever they stand, and no other text is", () => {
  const config = create(ModelConfigSchema, {
    name: "7",
    parameters: { "8": { stringValue: "9" } },
    schedulingChoice: {
      case: "dynamicBatching",
      value: { priorityLevels: 2n, priorityQueuePolicy: { "1": { defaultTimeoutMicroseconds: 5n } } },
    },
    versionPolicy: { policyChoice: { case: "specific", value: { versions: [1n, 3n] } } },
    modelWarmup: [{ inputs: { X: { dims: [-1n] } } }],
  })
  expect(print(ModelConfigSchema, config)).toMatchObject({
    name: "7",
    parameters: { "8": { string_value: "9" } },
    dynamic_batching: { priority_levels: 2, priority_queue_policy: { "1": { default_timeout_microseconds: 5 } } },
    version_policy: { specific: { versions: [1, 3] } },
    model_warmup: [{ inputs: { X: { dims: [-1] } } }],
  })
})

it("64-bit integers keep all their digits", () => {
  const versions = [2n ** 53n - 1n, 2n ** 53n + 1n, -(2n ** 63n), 2n ** 63n - 1n]
  const config = create(ModelConfigSchema, {
    versionPolicy: { policyChoice: { case: "specific", value: { versions } } },
    schedulingChoice: { case: "dynamicBatching", value: { priorityLevels: 2n ** 64n - 1n } },
  })
  const text = JSON.stringify(print(ModelConfigSchema, config))
  expect(text).toContain('"versions":[9007199254740991,9007199254740993,-9223372036854775808,9223372036854775807]')
  expect(text).toContain('"priority_levels":18446744073709551615,')
})
