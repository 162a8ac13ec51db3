/**
 * Configurations that are wrong by themselves, with the whole text of Triton. Each was compared with Triton 2.51,
 * except those of model_metrics, which newer versions have.
 */
import type { BrokenModel } from "./BrokenModel.ts"
import type { RepositoryLineName } from "./RepositoryLines.ts"
import { fp32, io, script, tensors } from "./StoredParts.ts"

type Row = readonly [name: string, config: string, reason: string]

const plain = tensors(fp32)

const control = (kind: string, more: string, name = "S") =>
  `control_input { name: "${name}" control { kind: CONTROL_SEQUENCE_${kind} ${more} } } `

const truth = "int32_false_true: [ 0, 1 ]"

const sequences = (name: string, config: string, reason: string): Row => [
  name,
  `backend: "nereid" ${plain} sequence_batching { ${config} }`,
  `${reason} for ${name}`,
]

const controls: ReadonlyArray<Row> = [
  sequences("control_without_name", control("START", truth, ""), "sequence batching control tensor must have a name"),
  sequences(
    "control_twice",
    control("START", truth) + control("END", truth),
    "sequence batching control tensor 'S' is specified for multiple control kinds",
  ),
  sequences(
    "control_of_two",
    control("START", truth) + control("START", truth, "T"),
    "sequence batching specifies multiple CONTROL_SEQUENCE_START tensors",
  ),
  sequences(
    "control_without_values",
    control("END", ""),
    "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for CONTROL_SEQUENCE_END",
  ),
  sequences(
    "control_of_two_types",
    control("READY", `${truth} fp32_false_true: [ 0, 1 ]`),
    "sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and 'bool_false_true' for CONTROL_SEQUENCE_READY",
  ),
  sequences(
    "control_of_three_values",
    control("START", "fp32_false_true: [ 0, 1, 2 ]"),
    "sequence batching control 'fp32_false_true' must have exactly 2 entries for CONTROL_SEQUENCE_START",
  ),
  sequences(
    "control_id_of_values",
    control("CORRID", `data_type: TYPE_INT32 ${truth}`),
    "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for CONTROL_SEQUENCE_CORRID",
  ),
  [
    "control_id_of_floats",
    `${plain} sequence_batching { ${control("CORRID", "data_type: TYPE_FP32")} }`,
    "unexpected data type for control CONTROL_SEQUENCE_CORRID for control_id_of_floats. Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING",
  ],
  sequences(
    "oldest_of_none",
    "oldest { preferred_batch_size: 0 }",
    "sequence batching preferred batch size must be positive",
  ),
  sequences(
    "oldest_of_many",
    "oldest { preferred_batch_size: 5 }",
    "sequence batching preferred batch size must be <= max batch size",
  ),
  sequences(
    "direct_of_much",
    "direct { minimum_slot_utilization: 1.5 }",
    "sequence batching minimum slot utilization must be in range (0.0, 1.0]",
  ),
]

const metrics = (name: string, more: string, reason: string): Row => [
  name,
  `backend: "nereid" ${plain} model_metrics { metric_control { ${more} } }`,
  reason,
]

const family = 'metric_identifier { family: "nv_inference_first_response_histogram_ms" }'

const buckets = (list: string) => `${family} histogram_options { buckets: [ ${list} ] }`

const ascending = (name: string, got: string) =>
  `buckets of 'nv_inference_first_response_histogram_ms' must be ascending numbers for ${name}, got [${got}]`

const controlledMetrics: ReadonlyArray<Row> = [
  metrics("metric_of_nothing", "histogram_options { buckets: 1 }", "metric control must specify 'metric_identifier'"),
  metrics(
    "metric_without_family",
    "metric_identifier {} histogram_options { buckets: 1 }",
    "metric identifier must specify non-empty 'family'",
  ),
  metrics("metric_without_options", family, "metric control must specify 'histogram_options'"),
  metrics(
    "metric_without_buckets",
    `${family} histogram_options {}`,
    "histogram options must specify non-empty 'buckets'",
  ),
  metrics("metric_out_of_order", buckets("2, 1"), ascending("metric_out_of_order", "2, 1")),
  metrics("metric_without_end", buckets("1, inf"), ascending("metric_without_end", "1, Infinity")),
]

const zero = io("input", "X", "data_type: TYPE_FP32 dims: 0")

const noGpu = "instance_group { kind: KIND_GPU }"

const decoupledCache = "model_transaction_policy { decoupled: true } response_cache { enable: true }"

const platforms: ReadonlyArray<Row> = [
  [
    "ensemble_with_backend",
    'platform: "ensemble" backend: "nereid"',
    "Ensemble model 'ensemble_with_backend' must have platform type 'ensemble' and empty backend type",
  ],
  [
    "file_without_backend",
    'default_model_filename: "net.onnx"',
    "unexpected platform type '' for file_without_backend",
  ],
  [
    "platform_of_onnx",
    'platform: "mine" backend: "onnxruntime"',
    "unexpected 'platform' and 'backend' pair, got:mine, onnxruntime",
  ],
]

const limit = "dynamic batching preferred size must be <= max batch size"

/** The first of several problems is told. */
const several: ReadonlyArray<Row> = [
  ["order_platform", 'platform: "onnx" max_batch_size: -1', "unexpected platform type 'onnx' for order_platform"],
  ["order_name", 'name: "other" max_batch_size: -1', "'max_batch_size' must be non-negative value for other"],
  [
    "order_batching",
    `backend: "nereid" max_batch_size: 4 ${zero} dynamic_batching { preferred_batch_size: 5 } ${decoupledCache}`,
    `${limit} for order_batching`,
  ],
  [
    "order_cache",
    `${plain} ${decoupledCache} model_metrics { metric_control {} }`,
    "Response Cache does not currently support model order_cache with 'decoupled' transaction policy. Please disable the response cache.",
  ],
  [
    "order_metrics",
    `${zero} ${noGpu} model_metrics { metric_control {} }`,
    "metric control must specify 'metric_identifier'",
  ],
]

/** Of models without a directory of a version. */
const withoutVersion: ReadonlyArray<Row> = [
  [
    "no_version_batching",
    'backend: "nereid" max_batch_size: 4 dynamic_batching { preferred_batch_size: 5 }',
    `${limit} for no_version_batching`,
  ],
  sequences("no_version_sequences", control("START", truth, ""), "sequence batching control tensor must have a name"),
  [
    "no_version_steps",
    'platform: "ensemble" ensemble_scheduling {}',
    "must specify 'step' for ensemble 'no_version_steps'",
  ],
  metrics("no_version_metrics", "", "metric control must specify 'metric_identifier'"),
  [
    "no_version_cache",
    `backend: "nereid" ${decoupledCache}`,
    "Response Cache does not currently support model no_version_cache with 'decoupled' transaction policy. Please disable the response cache.",
  ],
  [
    "no_version_backend",
    plain,
    "Invalid model name: Could not determine backend for model 'no_version_backend' with no backend in model configuration. Expected model name of the form 'model.<backend_name>'.",
  ],
]

const wrongInput = (name: string, more: string, reason: string): Row => [
  name,
  `${io("input", "X", `data_type: TYPE_FP32 ${more}`)}${io("output", "Y", fp32)}`,
  `${reason} for ${name}`,
]

const extents = "must be integer >= 1, or -1 to indicate a variable-size dimension"

const batchInput = (kind: string, more: string) => `${plain} batch_input { kind: ${kind} target_name: "E" ${more} }`

const batchOutput = (more: string) => `${plain} batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE ${more} }`

/** Told of a version. */
const ofVersion: ReadonlyArray<Row> = [
  wrongInput("extent_below", "dims: -2", `model input 'X' dimension ${extents}`),
  wrongInput("reshape_zero", "dims: 1 reshape { shape: 0 }", `model input 'X' reshape dimensions ${extents}`),
  wrongInput(
    "reshape_to_nothing",
    "dims: 1 reshape {}",
    "model input 'X' cannot have empty reshape for non-batching model as scalar tensors are not supported",
  ),
  wrongInput(
    "reshape_to_fixed",
    "dims: -1 reshape { shape: 4 }",
    "model input 'X' has different size for dims and reshape",
  ),
  wrongInput(
    "order_of_format",
    "dims: 1 is_shape_tensor: true format: FORMAT_NCHW",
    "model input NHWC/NCHW require 3 dims",
  ),
  wrongInput(
    "order_of_reshape",
    "dims: 4 reshape { shape: 3 } is_shape_tensor: true",
    "model input 'X' has different size for dims and reshape",
  ),
  [
    "order_group",
    `${zero} ${noGpu}`,
    "instance group order_group_0 of model order_group has kind KIND_GPU but no GPUs are available",
  ],
  [
    "order_labels",
    `${zero} ${io("output", "Y", `${fp32} label_filename: "no"`)}`,
    `model input 'X' dimension ${extents} for order_labels`,
  ],
  [
    "auto_with_gpus",
    `${plain} instance_group { gpus: 0 }`,
    "instance group auto_with_gpus_0 of model auto_with_gpus has kind KIND_CPU but specifies one or more GPUs",
  ],
  [
    "batch_input_of_none",
    batchInput("BATCH_ELEMENT_COUNT", "data_type: TYPE_FP32"),
    "batch input kind 'BATCH_ELEMENT_COUNT' expects 1 source input, got 0 for batch_input_of_none",
  ],
  [
    "batch_input_of_texts",
    batchInput("BATCH_ITEM_SHAPE", 'data_type: TYPE_STRING source_input: "X"'),
    "batch input data type must be TYPE_INT32 or TYPE_FP32 for batch_input_of_texts",
  ],
  [
    "batch_input_of_unknown",
    batchInput("BATCH_ELEMENT_COUNT", 'data_type: TYPE_FP32 source_input: "Q"'),
    "unknown source input name 'Q' for batch_input_of_unknown",
  ],
  [
    "batch_output_of_unknown",
    batchOutput('source_input: "X" target_name: "Q"'),
    "unknown target output name 'Q' for batch_output_of_unknown",
  ],
  [
    "batch_output_twice",
    batchOutput('source_input: "X" target_name: [ "Y", "Y" ]'),
    "target output name 'Y' can only be specified once for batch_output_twice",
  ],
]

/** A model without a version if `files` is empty. */
const early = (
  table: ReadonlyArray<Row>,
  files: BrokenModel["files"] & {},
  ...proves: ReadonlyArray<RepositoryLineName>
): ReadonlyArray<readonly [string, BrokenModel]> =>
  table.map(([name, config, reason]) => [name, { config, files, reason, isUnreadable: true, isWhole: true, proves }])

const late = (table: ReadonlyArray<Row>): ReadonlyArray<readonly [string, BrokenModel]> =>
  table.map(([name, config, reason]) => [
    name,
    { ...script(config), reason, isWhole: true, status: "Invalid argument", proves: ["A11.check.order"] },
  ])

const { files } = script("")

export const wrongConfigurations: Readonly<Record<string, BrokenModel>> = Object.fromEntries([
  ...early(controls, files, "A11.sequence.control"),
  ...early(controlledMetrics, files, "A11.metrics.control"),
  ...early(platforms, files, "A11.platform.pair"),
  ...early(several, files, "A11.check.order"),
  ...early(withoutVersion, {}, "A11.check.without-version"),
  ...late(ofVersion),
])
