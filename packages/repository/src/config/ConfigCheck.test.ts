/** Configurations that are refused, each with its message. */
import { Duration, Result } from "effect"
import * as InstancePlan from "@nereid/core/internal/instance/InstancePlan"
import { describe, expect, it } from "vitest"
import * as ConfigCheck from "./ConfigCheck.ts"
import * as ConfigDefaults from "./ConfigDefaults.ts"
import * as ConfigText from "./ConfigText.ts"
import * as InstanceGroupCheck from "./InstanceGroupCheck.ts"
import * as InstanceGroups from "./InstanceGroups.ts"
import * as OnnxParameters from "../onnx/OnnxParameters.ts"
import * as Support from "./Support.ts"
import * as TensorCheck from "./TensorCheck.ts"

const parse = (text: string) => Result.getOrThrow(ConfigText.parse(text))

/** Problem of a configuration whose backend is known, in the order of a load. */
const problem = (text: string, gpus: ReadonlyArray<number> = []) => {
  const config = ConfigDefaults.filled(ConfigDefaults.identified(parse(text), "m", new Set(["model.js"])), gpus)
  return ConfigCheck.problem(config) ?? InstanceGroupCheck.problem(config, gpus) ?? TensorCheck.problem(config)
}

describe("platform and backend", () => {
  it.each<readonly [text: string, files: ReadonlyArray<string>, problem: string | undefined]>([
    ["", ["model.onnx"], undefined],
    ['backend: "x" platform: "y"', [], undefined],
    ['platform: "onnxruntime_onnx"', [], undefined],
    ['platform: "x"', [], "unexpected platform type 'x' for m"],
    ['platform: "constructor"', [], "unexpected platform type 'constructor' for m"],
    ['default_model_filename: "net.onnx"', ["model.onnx"], "unexpected platform type '' for m"],
    [
      'platform: "ensemble" backend: "x"',
      [],
      "Ensemble model 'm' must have platform type 'ensemble' and empty backend type",
    ],
    [
      'platform: "onnxruntime_onnx" backend: "tensorrt"',
      [],
      "unexpected 'platform' and 'backend' pair, got:onnxruntime_onnx, tensorrt",
    ],
    ['platform: "x" backend: "onnxruntime"', [], "unexpected 'platform' and 'backend' pair, got:x, onnxruntime"],
    ['backend: "tensorflow"', [], "unexpected 'platform' and 'backend' pair, got:, tensorflow"],
    ['backend: "pytorch"', [], undefined],
    ["max_batch_size: -1", ["model.js"], "'max_batch_size' must be non-negative value for m"],
  ])("%s with %s", (text, files, expected) => {
    expect(ConfigCheck.problem(ConfigDefaults.identified(parse(text), "m", new Set(files)))).toBe(expected)
  })

  it("a model of which nothing tells a backend may have it in its name", () => {
    const named = (name: string) => ConfigDefaults.identified(parse(""), name, new Set(["weights.bin"]))
    expect(named("m.fil.x")).toMatchObject({ backend: "fil.x", defaultModelFilename: "model.fil.x" })
    expect(ConfigCheck.backendProblem(named("m.fil.x"), "m.fil.x")).toBeUndefined()
    expect(ConfigCheck.backendProblem(named("m"), "m")).toBe(
      "Invalid model name: Could not determine backend for model 'm' with no backend in model configuration. " +
        "Expected model name of the form 'model.<backend_name>'.",
    )
  })

  it.each([
    ['name: "m"', undefined],
    ["", undefined],
    ['name: "other"', "unexpected directory name 'm' for model 'other', directory name must equal model name"],
  ])("the name %s", (text, expected) => {
    expect(ConfigCheck.nameProblem(parse(text), "m")).toBe(expected)
  })
})

const histogram = (buckets: string) =>
  `model_metrics { metric_control { metric_identifier { family: "nv_inference_first_response_histogram_ms" }
    histogram_options { buckets: [ ${buckets} ] } } }`

const controlled = (text: string) => `model_metrics { metric_control { ${text} } }`

const sequences = (text: string) => `max_batch_size: 8 sequence_batching { ${text} }`

const control = (kind: string, text: string, name = "S") =>
  `control_input { name: "${name}" control { kind: CONTROL_SEQUENCE_${kind} ${text} } } `

const int32 = "int32_false_true: [0, 1]"

const cases: Readonly<Record<string, ReadonlyArray<readonly [text: string, problem: string | undefined]>>> = {
  batching: [
    ["max_batch_size: 8 dynamic_batching { preferred_batch_size: [4, 8] }", undefined],
    ["max_batch_size: 8 dynamic_batching {}", undefined],
    [
      "max_batch_size: 8 dynamic_batching { preferred_batch_size: [0] }",
      "dynamic batching preferred size must be positive for m",
    ],
    [
      "max_batch_size: 8 dynamic_batching { preferred_batch_size: [9] }",
      "dynamic batching preferred size must be <= max batch size for m",
    ],
    ["dynamic_batching { priority_levels: 2 }", "default priority level must be in range [1, 2] for m"],
    [
      "dynamic_batching { priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 3 value {} } }",
      "priority queue policy must have priority level in range [1, 2] for m",
    ],
    [
      "dynamic_batching { priority_levels: 2 default_priority_level: 1 preserve_ordering: true }",
      "Only one priority level is allowed when 'preserve_ordering' is true for m",
    ],
    [
      "dynamic_batching { preserve_ordering: true default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 1 } }",
      "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m",
    ],
    ["ensemble_scheduling {}", "ensemble scheduling cannot be set for model 'm' whose platform is not ensemble"],
    ['platform: "ensemble"', "ensemble scheduling must be set for ensemble m whose platform is ensemble"],
    [
      "response_cache { enable: true } sequence_batching {}",
      "Response Cache does not currently support model m with sequence batching scheduler. Please disable the response cache.",
    ],
    [
      "response_cache { enable: true } model_transaction_policy { decoupled: true }",
      "Response Cache does not currently support model m with 'decoupled' transaction policy. Please disable the response cache.",
    ],
  ],
  metrics: [
    [histogram("100, 500"), undefined],
    [
      histogram("500, 100"),
      "buckets of 'nv_inference_first_response_histogram_ms' must be ascending numbers for m, got [500, 100]",
    ],
    [
      histogram("1, inf"),
      "buckets of 'nv_inference_first_response_histogram_ms' must be ascending numbers for m, got [1, Infinity]",
    ],
    ["model_metrics {}", undefined],
    [controlled(""), "metric control must specify 'metric_identifier'"],
    [controlled("histogram_options { buckets: 1 }"), "metric control must specify 'metric_identifier'"],
    [
      controlled("metric_identifier {} histogram_options { buckets: 1 }"),
      "metric identifier must specify non-empty 'family'",
    ],
    [controlled('metric_identifier { family: "f" }'), "metric control must specify 'histogram_options'"],
    [
      controlled('metric_identifier { family: "f" } histogram_options {}'),
      "histogram options must specify non-empty 'buckets'",
    ],
    // Another family has no effect, so its buckets do not matter.
    [controlled('metric_identifier { family: "f" } histogram_options { buckets: [2, 1] }'), undefined],
  ],
  sequences: [
    [sequences(""), undefined],
    [sequences("direct { minimum_slot_utilization: 1 }"), undefined],
    [sequences(control("START", int32) + control("END", "bool_false_true: [false, true]", "E")), undefined],
    [sequences(control("CORRID", "data_type: TYPE_UINT64")), undefined],
    [sequences(control("START", int32, "")), "sequence batching control tensor must have a name for m"],
    [
      sequences(control("START", int32) + control("END", int32)),
      "sequence batching control tensor 'S' is specified for multiple control kinds for m",
    ],
    [
      sequences(control("START", int32) + control("START", int32, "T")),
      "sequence batching specifies multiple CONTROL_SEQUENCE_START tensors for m",
    ],
    [
      sequences(control("START", "")),
      "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for CONTROL_SEQUENCE_START for m",
    ],
    [
      sequences(control("END", `${int32} fp32_false_true: [0, 1]`)),
      "sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and 'bool_false_true' for CONTROL_SEQUENCE_END for m",
    ],
    [
      sequences(control("READY", "fp32_false_true: [0, 1, 2]")),
      "sequence batching control 'fp32_false_true' must have exactly 2 entries for CONTROL_SEQUENCE_READY for m",
    ],
    [
      sequences(control("CORRID", `data_type: TYPE_UINT64 ${int32}`)),
      "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for CONTROL_SEQUENCE_CORRID for m",
    ],
    [
      sequences(control("CORRID", "data_type: TYPE_FP32")),
      "unexpected data type for control CONTROL_SEQUENCE_CORRID for m. Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING",
    ],
    [sequences("oldest { preferred_batch_size: 0 }"), "sequence batching preferred batch size must be positive for m"],
    [
      sequences("oldest { preferred_batch_size: 9 }"),
      "sequence batching preferred batch size must be <= max batch size for m",
    ],
    [
      sequences("direct { minimum_slot_utilization: 1.5 }"),
      "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m",
    ],
  ],
  tensors: [
    ["input { name: 'X' data_type: TYPE_FP32 dims: [-1, 3] }", undefined],
    ["input {}", "model input must specify 'name' for m"],
    ["output { name: 'Y' }", "model output 'Y' must specify 'data_type' for m"],
    ["output { name: 'Y' data_type: 99 dims: 1 }", "model output 'Y' has unexpected data_type 99 for m"],
    ["input { name: 'X' data_type: -1 dims: 1 }", "model input 'X' has unexpected data_type -1 for m"],
    ["input { name: 'X' data_type: 11 dims: 1 format: 9 }", "model input 'X' has unexpected format 9 for m"],
    ["input { name: 'X' data_type: TYPE_FP32 }", "model input 'X' must specify 'dims' for m"],
    [
      "input { name: 'X' data_type: TYPE_FP32 dims: 0 }",
      "model input 'X' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m",
    ],
    [
      "output { name: 'Y' data_type: TYPE_FP32 dims: 4 reshape { shape: [2, -2] } }",
      "model output 'Y' reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension for m",
    ],
    [
      "input { name: 'X' data_type: TYPE_FP32 dims: 4 reshape { shape: [2, 3] } }",
      "model input 'X' has different size for dims and reshape for m",
    ],
    ["input { name: 'X' data_type: TYPE_FP32 dims: [2, 4, -1, 6] reshape { shape: [8, -1, 1, 6] } }", undefined],
    ["backend: 'onnxruntime' input { name: 'X' data_type: TYPE_FP32 dims: 1 reshape {} }", undefined],
    ["max_batch_size: 1 input { name: 'X' data_type: TYPE_FP32 dims: 1 reshape {} }", undefined],
    [
      "input { name: 'X' data_type: TYPE_FP32 dims: 0 reshape {} }",
      "model input 'X' cannot have empty reshape for non-batching model as scalar tensors are not supported for m",
    ],
    ["input { name: 'X' data_type: TYPE_FP32 dims: 1 allow_ragged_batch: true }", undefined],
    [
      "output { name: 'Y' data_type: TYPE_FP32 dims: [1, 2, 3] is_non_linear_format_io: true }",
      "Non-linear IO format is only supported for the TensorRT platform for m",
    ],
    [
      "input { name: 'X' data_type: TYPE_FP32 dims: 4 is_shape_tensor: true reshape { shape: 3 } format: FORMAT_NCHW }",
      "model input 'X' has different size for dims and reshape for m",
    ],
    [
      "input { name: 'X' data_type: TYPE_FP32 dims: 4 is_shape_tensor: true format: FORMAT_NCHW }",
      "model input NHWC/NCHW require 3 dims for m",
    ],
    [
      "input { name: 'X' data_type: TYPE_FP32 dims: [-1, 4] reshape { shape: [-1, -1] } }",
      "model input 'X' has different number of variable-size dimensions for dims and reshape for m",
    ],
    [
      "input { name: 'X' data_type: TYPE_FP32 dims: [-1, 4] reshape { shape: [2, -1, 4] } }",
      "model input 'X' has different size for dims and reshape for m",
    ],
    [
      "input { name: 'X' data_type: TYPE_FP32 dims: 4 is_shape_tensor: true }",
      "shape tensors are only supported for TensorRT platform for m",
    ],
    [
      "input { name: 'X' data_type: TYPE_FP32 dims: 4 format: FORMAT_NHWC }",
      "model input NHWC/NCHW require 3 dims for m",
    ],
    [
      "input [ { name: 'X' data_type: TYPE_FP32 dims: 4 }, { name: 'X' data_type: TYPE_INT8 dims: 4 } ]",
      "model input 'X' of m is given more than once",
    ],
  ],
  instances: [
    ["instance_group [ { kind: KIND_CPU count: 3 }, { kind: KIND_AUTO }, { kind: KIND_MODEL count: -2 } ]", undefined],
    ["instance_group { kind: KIND_GPU }", "instance group m_0 of model m has kind KIND_GPU but no GPUs are available"],
    [
      "instance_group { kind: KIND_GPU gpus: 9 }",
      "instance group m_0 of model m specifies invalid or unsupported gpu id 9. Available GPUs: ",
    ],
    [
      "instance_group [ {}, { name: 'second' kind: KIND_CPU gpus: 0 } ]",
      "instance group second of model m has kind KIND_CPU but specifies one or more GPUs",
    ],
    ["instance_group { gpus: 0 }", "instance group m_0 of model m has kind KIND_CPU but specifies one or more GPUs"],
    [
      "instance_group { profile: '1' }",
      "instance group m_0 of model m and platform specifies profile field which is only supported for TensorRT models",
    ],
    [
      'platform: "ensemble" ensemble_scheduling {} instance_group { count: 1 }',
      "instance group should not be specified for ensemble 'm'",
    ],
  ],
  order: [
    [
      "dynamic_batching { preferred_batch_size: 9 } max_batch_size: 8 input {} instance_group { kind: KIND_GPU }",
      "dynamic batching preferred size must be <= max batch size for m",
    ],
    [
      "input {} instance_group { kind: KIND_GPU }",
      "instance group m_0 of model m has kind KIND_GPU but no GPUs are available",
    ],
    [
      `model_transaction_policy { decoupled: true } response_cache { enable: true } ${controlled("")}`,
      "Response Cache does not currently support model m with 'decoupled' transaction policy. Please disable the response cache.",
    ],
    [`input {} ${controlled("")}`, "metric control must specify 'metric_identifier'"],
  ],
}

describe.each(Object.entries(cases))("%s", (_, texts) => {
  it.each([...texts])("%s", (text, expected) => {
    expect(problem(text)).toBe(expected)
  })
})

it("fills in omitted fields", () => {
  const config = parse(
    "max_batch_size: 4 dynamic_batching {} instance_group [ { count: 3 }, { name: 'b' kind: KIND_CPU } ]",
  )
  const filled = ConfigDefaults.filled(ConfigDefaults.identified(config, "m", new Set(["model.onnx"])), [])
  expect(filled).toMatchObject({
    name: "m",
    platform: "onnxruntime_onnx",
    backend: "onnxruntime",
    defaultModelFilename: "model.onnx",
    versionPolicy: { policyChoice: { case: "latest", value: { numVersions: 1 } } },
    instanceGroup: [
      { name: "m_0", kind: 2, count: 3 },
      { name: "b", kind: 2, count: 2 },
    ],
    optimization: { inputPinnedMemory: { enable: true }, outputPinnedMemory: { enable: true } },
    schedulingChoice: { case: "dynamicBatching", value: { preferredBatchSize: [4] } },
  })
})

it.each([
  ["model.onnx", { name: "m", kind: 2, count: 2 }],
  ["model.ts", { name: "m", kind: 2, count: 1 }],
])("the group of a model that lists none: %s", (file, group) => {
  const filled = ConfigDefaults.filled(ConfigDefaults.identified(parse(""), "m", new Set([file])), [])
  expect(filled.instanceGroup).toMatchObject([group])
})

describe("on a machine with GPUs 0 and 1", () => {
  const gpus = [0, 1]

  it.each([
    ["instance_group { kind: KIND_GPU }", undefined],
    ["instance_group { kind: KIND_GPU gpus: [1] }", undefined],
    ["instance_group { gpus: 0 }", undefined],
    [
      "instance_group { kind: KIND_GPU gpus: [0, 2] }",
      "instance group m_0 of model m specifies invalid or unsupported gpu id 2. Available GPUs: 0, 1",
    ],
    [
      "instance_group { kind: KIND_MODEL gpus: 0 }",
      "instance group m_0 of model m has kind KIND_MODEL but specifies one or more GPUs",
    ],
  ])("%s", (text, expected) => {
    expect(problem(text, gpus)).toBe(expected)
  })

  it("sessions are on each GPU of their group, or on the CPU", () => {
    const config = parse(`instance_group [ { kind: KIND_GPU }, { count: 3 }, { count: 2 gpus: 1 } ]
      optimization { execution_accelerators { gpu_execution_accelerator { name: "tensorrt" } } }`)
    const filled = ConfigDefaults.filled({ ...config, name: "m" }, gpus)
    const { instances } = InstancePlan.make("m", "1", InstanceGroups.options(filled))
    const on = (deviceId: number) => [
      { name: "tensorrt", deviceId },
      { name: "cuda", deviceId },
    ]
    expect(instances.map(({ details }) => [details.name, OnnxParameters.providers(filled, details)])).toEqual([
      ["m_0_0", on(0)],
      ["m_0_1", on(1)],
      ["m_1_0", ["cpu"]],
      ["m_1_1", ["cpu"]],
      ["m_1_2", ["cpu"]],
      ["m_2_0", on(1)],
      ["m_2_1", on(1)],
    ])
  })

  it("CUDA, which an instance on a GPU has anyway, may be named as an accelerator", () => {
    const config = parse(`instance_group { kind: KIND_GPU gpus: 1 } optimization { execution_accelerators {
      gpu_execution_accelerator { name: "cuda" parameters { key: "cudnn_conv_algo_search" value: "1" } } } }`)
    const filled = ConfigDefaults.filled(config, gpus)
    expect(Result.isSuccess(OnnxParameters.options(filled, "m.onnx", 0))).toBe(true)
    const { instances } = InstancePlan.make("m", "1", InstanceGroups.options(filled))
    expect(instances.map(({ details }) => OnnxParameters.providers(filled, details))).toEqual([
      [{ name: "cuda", deviceId: 1 }],
    ])
    expect(Support.warnings(filled, false)).toEqual([
      "optimization.execution_accelerators.gpu_execution_accelerator.parameters",
    ])
  })

  it.each([
    ["", 0, undefined],
    ["", 60, "60 seconds"],
    ["5", 60, "5 seconds"],
    ["0", 60, undefined],
  ] as const)("idle_timeout_seconds '%s' overrides the server's %i", (text, ofServer, timeout) => {
    const config = parse(`parameters { key: "idle_timeout_seconds" value { string_value: "${text}" } }`)
    const { idleTimeout } = Result.getOrThrow(OnnxParameters.options(config, "m.onnx", ofServer))
    expect(idleTimeout).toEqual(timeout === undefined ? undefined : Duration.fromInputUnsafe(timeout))
  })

  it("refuses an unavailable accelerator", () => {
    const problemOf = (kind: string, name: string) => {
      const text = `optimization { execution_accelerators { ${kind}_execution_accelerator { name: "${name}" } } }`
      return Result.getOrThrow(
        Result.flip(OnnxParameters.options(ConfigDefaults.filled(parse(text), gpus), "m.onnx", 0)),
      )
    }
    expect(problemOf("cpu", "openvino")).toContain("OpenVINO Execution Accelerator is not enabled")
    expect(problemOf("gpu", "x")).toBe("unknown Execution Accelerator 'x' is requested")
  })
})
