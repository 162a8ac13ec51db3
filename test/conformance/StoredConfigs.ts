/**
 * Valid configurations of the repository under test, and their reported form. Most belong to scripts, which load
 * quickly. Invalid ones are in StoredRefusals.ts.
 */
import { plus } from "../fixtures/repository.ts"
import type { RepositoryLineName } from "./RepositoryLines.ts"
import { echo } from "./StoredParts.ts"

export interface StoredConfig {
  readonly config: string | Uint8Array
  /** Default a script as `1/model.js`. */
  readonly files?: { readonly [file: string]: string | Uint8Array }
  /** A part of the configuration that callers see. */
  readonly shows: unknown
  readonly proves: ReadonlyArray<RepositoryLineName>
}

const io = (kind: "input" | "output", name: string, more = "") =>
  `${kind} { name: "${name}" data_type: TYPE_INT32 dims: 1 ${more} }\n`

const tensors = io("input", "X") + io("output", "Y")

const parameter = (value: string) => `parameters { key: "p" value { string_value: ${value} } }`

const showing = (text: string) => ({ parameters: { p: { string_value: text } } })

/** `tensors` stand in front of the configuration, which is not about them. */
const of = (config: string, shows: unknown, ...proves: ReadonlyArray<RepositoryLineName>): StoredConfig => ({
  config: tensors + config,
  shows,
  proves,
})

const whole = (config: string, shows: unknown, ...proves: ReadonlyArray<RepositoryLineName>): StoredConfig => ({
  config,
  shows,
  proves,
})

const parser: Readonly<Record<string, StoredConfig>> = {
  comments: of("# one\nmax_batch_size: 4 # two # three\n#", { max_batch_size: 4 }, "A11.parser.comments"),
  separators: whole(
    'name: "separators"; max_batch_size: 4, input { name: "X"; data_type: TYPE_INT32, dims: 1; }; output { name: "Y" data_type: TYPE_INT32 dims: [ 1 ], },',
    { max_batch_size: 4, input: [{ name: "X", data_type: "TYPE_INT32", dims: [1] }], output: [{ dims: [1] }] },
    "A11.parser.separators",
    "A11.parser.enum-name",
    "A11.name.equal",
  ),
  lists: whole(
    "input: [ { name: 'X' data_type: TYPE_INT32 dims: [ 1, -1, 3 ] }, { name: 'Z' data_type: TYPE_INT32 dims: [1] } ] output [ { name: 'Y' data_type: TYPE_INT32 dims: [ 1 ] dims: 2 } ] cc_model_filenames [ ]",
    {
      input: [
        { name: "X", dims: [1, -1, 3] },
        { name: "Z", dims: [1] },
      ],
      output: [{ dims: [1, 2] }],
    },
    "A11.parser.lists",
    "A11.parser.repeated",
  ),
  quotes: of(parameter(`'it"s' "it's"`), showing(`it"sit's`), "A11.parser.quotes"),
  concatenation: of(parameter(`"a" 'b'\n  # between\n  "c"`), showing("abc"), "A11.parser.concatenation"),
  escapes: of(
    parameter(String.raw`"\t\n\\\"\'\x41\101\u00e9\U0001F30A"`),
    showing("\t\n\\\"'AA\u00e9\u{1F30A}"),
    "A11.parser.escapes",
  ),
  colons: of(
    `version_policy: { all: {} } instance_group: { count: 3 }`,
    { version_policy: { all: {} }, instance_group: [{ count: 3 }] },
    "A11.parser.colon",
  ),
  angles: whole(
    "input < name: 'X' data_type: TYPE_INT32 dims: 1 > output: [ < name: 'Y' data_type: TYPE_INT32 dims: 2 > ]",
    { input: [{ name: "X" }], output: [{ name: "Y", dims: [2] }] },
    "A11.parser.angles",
  ),
  numbered: whole(
    `${io("output", "Y")} input { name: "X" data_type: 8 dims: 1 } instance_group { kind: 3 }`,
    { input: [{ data_type: "TYPE_INT32" }], instance_group: [{ kind: "KIND_MODEL" }] },
    "A11.parser.enum-number",
    "A11.group.model",
  ),
  integers: whole(
    `max_batch_size: 0x10 input { name: "X" data_type: TYPE_INT32 dims: [ 010, - 1, 0X1f ] } ${io("output", "Y")}
      dynamic_batching { default_queue_policy { default_timeout_microseconds: 0x20000000000001 } }`,
    { max_batch_size: 16, input: [{ dims: [8, -1, 31] }] },
    "A11.parser.integers",
  ),
  floats: of(
    `model_metrics { metric_control { metric_identifier { family: "f" } histogram_options { buckets: [ 1, 1.5e3, .5, 2f, -5., inf, nan ] } } }`,
    {
      model_metrics: {
        metric_control: [
          {
            metric_identifier: { family: "f" },
            histogram_options: { buckets: [1, 1500, 0.5, 2, -5, "Infinity", "NaN"] },
          },
        ],
      },
    },
    "A11.parser.floats",
    "A11.model-metrics",
  ),
  booleans: of(
    "optimization { eager_batching: 1 cuda { graphs: t busy_wait_events: True output_copy_stream: false } }",
    {
      optimization: { eager_batching: true, cuda: { graphs: true, busy_wait_events: true, output_copy_stream: false } },
    },
    "A11.parser.booleans",
  ),
  maps: of(
    "metric_tags: [ { key: 'a' value: '1' }, { key: 'b' value: '2' } ] metric_tags { key: 'c' } metric_tags { value: '3' key: 'd' }",
    { metric_tags: { a: "1", b: "2", c: "", d: "3" } },
    "A11.parser.maps",
  ),
  duplicate_keys: of(`${parameter("'first'")} ${parameter("'last'")}`, showing("last"), "A11.parser.duplicate-keys"),
  line_ends: whole(
    `\uFEFFmax_batch_size: 2\r\n${tensors.replaceAll("\n", "\r\n")}`,
    { max_batch_size: 2 },
    "A11.parser.line-ends",
    "A11.name.absent",
  ),
  empty: {
    config: "",
    files: { "1/model.onnx": plus(1) },
    shows: { name: "empty", platform: "onnxruntime_onnx", max_batch_size: 4, input: [{ name: "X" }] },
    proves: ["A11.parser.empty"],
  },
}

const groups: Readonly<Record<string, StoredConfig>> = {
  defaults: of(
    "",
    {
      name: "defaults",
      platform: "",
      backend: "nereid",
      runtime: "",
      version_policy: { latest: { num_versions: 1 } },
      max_batch_size: 0,
      instance_group: [{ name: "defaults", kind: "KIND_CPU", count: 1, gpus: [], passive: false, host_policy: "" }],
      optimization: { input_pinned_memory: { enable: true }, output_pinned_memory: { enable: true } },
      default_model_filename: "model.js",
      parameters: {},
    },
    "A1.config.defaults",
    "A1.config.version-policy",
    "A1.config.script-group",
    "A1.config.pinned-memory",
    "A11.completion.script",
    "A11.max-batch-size.zero",
  ),
  groups: of(
    `instance_group [ { count: 2 }, { name: "own" count: 1 kind: KIND_CPU }, { } ]`,
    {
      instance_group: [
        { name: "groups_0", count: 2, kind: "KIND_CPU" },
        { name: "own", count: 1, kind: "KIND_CPU" },
        { name: "groups_2", count: 1, kind: "KIND_CPU" },
      ],
    },
    "A1.config.listed-group",
    "A11.group.count",
    "A11.group.name",
    "A11.group.several",
    "A11.group.auto",
  ),
  group_of_negative_count: of(
    "instance_group { count: -1 }",
    { instance_group: [{ name: "group_of_negative_count_0", count: 1, kind: "KIND_CPU" }] },
    "A11.group.count.negative",
  ),
  group_fields: of(
    `instance_group { kind: KIND_CPU secondary_devices { kind: KIND_NVDLA device_id: 1 } host_policy: "p"
      rate_limiter { resources { name: "R" global: true count: 3 } priority: 2 } } instance_group { passive: true }`,
    {
      instance_group: [
        {
          secondary_devices: [{ kind: "KIND_NVDLA", device_id: 1 }],
          host_policy: "p",
          rate_limiter: { resources: [{ name: "R", global: true, count: 3 }], priority: 2 },
        },
        { passive: true },
      ],
    },
    "A11.group.secondary-devices",
    "A11.group.host-policy",
    "A11.group.rate-limiter",
    "A11.group.passive",
  ),
}

const fields: Readonly<Record<string, StoredConfig>> = {
  ragged_without_batch: whole(
    `${io("input", "X", "allow_ragged_batch: true")}${io("output", "Y")}`,
    { input: [{ allow_ragged_batch: true }] },
    "A11.ragged.input",
  ),
  format: whole(
    `input { name: "X" data_type: TYPE_INT32 dims: [ 3, 2, 2 ] format: FORMAT_NCHW } ${io("output", "Y")}`,
    { input: [{ format: "FORMAT_NCHW", dims: [3, 2, 2] }] },
    "A11.io.format",
  ),
  huge: whole(
    `input { name: "X" data_type: TYPE_INT32 dims: 9007199254740991 } ${io("output", "Y")}`,
    { input: [{ dims: [9007199254740991n] }] },
    "A11.io.dims.most",
  ),
  batching: of(
    "max_batch_size: 8 dynamic_batching {}",
    { dynamic_batching: { preferred_batch_size: [8], max_queue_delay_microseconds: 0 } },
    "A1.config.preferred-batch-size",
  ),
  parameters: of(parameter('"v"'), showing("v"), "A11.parameters"),
  optimization: of(
    `optimization { priority: PRIORITY_MAX gather_kernel_buffer_threshold: 4096 eager_batching: true
      cuda { graphs: true graph_spec { batch_size: 1 input { key: "X" value { dim: 1 } } } }
      input_pinned_memory { enable: false } }`,
    {
      optimization: {
        priority: "PRIORITY_MAX",
        gather_kernel_buffer_threshold: 4096,
        eager_batching: true,
        cuda: { graphs: true, graph_spec: [{ batch_size: 1, input: { X: { dim: [1] } } }] },
        input_pinned_memory: { enable: false },
        output_pinned_memory: { enable: true },
      },
    },
    "A11.optimization.rest",
    "A11.optimization.pinned",
  ),
  other_file: {
    config: `${tensors} backend: "nereid" default_model_filename: "other.js"`,
    files: { "1/other.js": echo },
    shows: { default_model_filename: "other.js" },
    proves: ["A11.default-model-filename"],
  },
  without_effect: of(
    `cc_model_filenames { key: "8.0" value: "m.plan" } metric_tags { key: "team" value: "vision" } runtime: "r"
      model_operations { op_library_filename: "lib.so" }
      model_repository_agents { agents { name: "checksum" parameters { key: "MD5:1/model.js" value: "0" } } }`,
    {
      cc_model_filenames: { "8.0": "m.plan" },
      metric_tags: { team: "vision" },
      runtime: "r",
      model_operations: { op_library_filename: ["lib.so"] },
      model_repository_agents: { agents: [{ name: "checksum", parameters: { "MD5:1/model.js": "0" } }] },
    },
    "A11.cc-model-filenames",
    "A11.metric-tags",
    "A11.runtime",
    "A11.model-operations",
    "A11.agents",
  ),
  by_platform: {
    config: 'platform: "onnxruntime_onnx" instance_group { count: 1 } optimization { graph { level: -1 } }',
    files: { "1/model.onnx": plus(1) },
    shows: { platform: "onnxruntime_onnx", backend: "onnxruntime", optimization: { graph: { level: -1 } } },
    proves: ["A11.platform.implies", "A11.optimization.graph"],
  },
  by_backend: {
    config: `backend: "onnxruntime" instance_group { count: 1 }
      ${["intra_op_thread_count", "inter_op_thread_count", "execution_mode", "enable_mem_arena"]
        .map((key) => `parameters { key: "${key}" value { string_value: "1" } }`)
        .join(" ")}
      input { name: "X" } output { name: "Y" }`,
    files: { "1/model.onnx": plus(1) },
    shows: {
      platform: "onnxruntime_onnx",
      max_batch_size: 0,
      input: [{ name: "X", data_type: "TYPE_FP32", dims: [-1, 1] }],
      output: [{ name: "Y", data_type: "TYPE_FP32", dims: [-1, 1] }],
      parameters: { execution_mode: { string_value: "1" } },
    },
    proves: ["A11.platform.backend", "A11.parameters.onnx", "A11.completion.partial"],
  },
  ensemble_fields: {
    config: `platform: "ensemble" ${tensors} ensemble_scheduling { max_inflight_requests: 3
      step { model_name: "parameters" model_version: 1 model_namespace: "n"
        input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } }`,
    files: { "1/.keep": "" },
    shows: {
      ensemble_scheduling: {
        max_inflight_requests: 3,
        step: [{ model_name: "parameters", model_version: 1, model_namespace: "n", input_map: { X: "X" } }],
      },
    },
    proves: ["A11.ensemble.inflight", "A11.ensemble.namespace", "A11.ensemble.version"],
  },
}

/** By the names of their models. */
export const configs: Readonly<Record<string, StoredConfig>> = { ...parser, ...groups, ...fields }
