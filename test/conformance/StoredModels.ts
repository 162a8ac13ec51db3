/**
 * The repository that the cases ask: a directory of models, written node by node, with configurations and without. What they
 * answer can be told from what they were asked, as with Models.ts; what is wrong with some of them stands in the index.
 */
import { Effect, Layer } from "effect"
import { Repository } from "@nereid/repository"
import { addSub, type ElementTypeName, initializer, model, node, nonZero, ragged, value } from "../fixtures/onnx.ts"
import { plus, repository, type RepositoryFixture } from "../fixtures/repository.ts"

/** Those that ONNX Runtime has for Node, but for strings, which it cannot add. */
export const numeric = [
  "BOOL",
  "UINT8",
  "UINT16",
  "UINT32",
  "UINT64",
  "INT8",
  "INT16",
  "INT32",
  "INT64",
  "FP16",
  "FP32",
  "FP64",
] as const satisfies ReadonlyArray<ElementTypeName>

type Dims = ReadonlyArray<number | string>

/** X → Y, unchanged. */
const identity = (datatype: ElementTypeName, dims: Dims): Uint8Array =>
  model({
    inputs: [value("X", datatype, dims)],
    outputs: [value("Y", datatype, dims)],
    nodes: [node("Identity", ["X"], ["Y"])],
  })

/** One session: there are many of them. */
const one = "instance_group { count: 1 kind: KIND_CPU }\n"

const echo = `export default { execute: (requests) => requests.map(({ inputs: { X } }) => ({ Y: X })) }`

const io = (kind: "input" | "output", name: string, more: string) => `${kind} { name: "${name}" ${more} }\n`

interface Stored {
  readonly name: string
  readonly file: Uint8Array | string
  /** Below the directory of the model. Default `1/model.onnx`. */
  readonly at?: string
  /** Undefined for none. */
  readonly config?: string
  readonly more?: { readonly [file: string]: string | Uint8Array }
}

const ready: ReadonlyArray<Stored> = [
  ...numeric.map((datatype) => ({
    name: `add_sub_${datatype.toLowerCase()}`,
    file: addSub(datatype, ["n", 2]),
    config: one,
  })),
  { name: "add_sub_bytes", file: addSub("BYTES", ["n", 2]), config: one },
  { name: "bare", file: plus(1) },
  { name: "fixed", file: identity("FP32", [2, 3]), config: one },
  { name: "variable", file: identity("INT64", [2, "n", -1]), config: one },
  { name: "rows", file: identity("FP32", ["n", "k"]), config: one },
  { name: "strings", file: identity("BYTES", ["n", "k"]), config: one },
  { name: "scalar", file: identity("INT32", []), config: one },
  { name: "scalars", file: identity("FP64", ["n"]), config: one },
  { name: "positions", file: nonZero(), config: one },
  {
    name: "reshaped",
    file: identity("FP32", ["n", 2, 2, "k"]),
    config:
      `max_batch_size: 4 ${one}` +
      io("input", "X", "data_type: TYPE_FP32 dims: [ 4, -1 ] reshape { shape: [ 2, 2, -1 ] }") +
      io("output", "Y", "data_type: TYPE_FP32 dims: [ 1, 4, -1 ] reshape { shape: [ 2, 2, -1 ] }"),
  },
  {
    name: "reshaped_to_nothing",
    file: identity("UINT8", ["n"]),
    config:
      `max_batch_size: 4 ${one}` +
      io("input", "X", "data_type: TYPE_UINT8 dims: 1 reshape { shape: [ ] }") +
      io("output", "Y", "data_type: TYPE_UINT8 dims: [ 1, 1 ] reshape { shape: [ ] }"),
  },
  {
    name: "labelled",
    file: identity("FP32", ["n", 3]),
    config: `${one}${io("input", "X", "")}${io("output", "Y", 'label_filename: "labels.txt"')}max_batch_size: 2`,
    more: { "labels.txt": "cat\r\ndog\nnewt of the pond\n\n" },
  },
  {
    name: "ragged",
    file: ragged(),
    config:
      `max_batch_size: 4 dynamic_batching {} ${one}` +
      io("input", "X", "data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true") +
      io("output", "Y", "data_type: TYPE_FP32 dims: -1") +
      `batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "ENDS" data_type: TYPE_INT32 source_input: "X" }
       batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "Y" source_input: "X" }`,
  },
  {
    name: "optional",
    file: model({
      inputs: [value("X", "INT64", ["n", 2]), value("AMOUNT", "INT64", ["n", 2])],
      outputs: [value("Y", "INT64", ["n", 2])],
      nodes: [node("Add", ["X", "AMOUNT"], ["Y"])],
      initializers: [initializer("AMOUNT", "INT64", [1, 2], BigInt64Array.of(10n, 20n))],
    }),
    config:
      `max_batch_size: 4 ${one}` +
      io("input", "X", "data_type: TYPE_INT64 dims: 2") +
      io("input", "AMOUNT", "data_type: TYPE_INT64 dims: 2 optional: true") +
      io("output", "Y", "data_type: TYPE_INT64 dims: 2"),
  },
  {
    name: "script",
    at: "1/model.js",
    file: echo,
    config: `max_batch_size: 4 ${io("input", "X", "data_type: TYPE_STRING dims: -1")}${io("output", "Y", "data_type: TYPE_STRING dims: -1")}`,
  },
]

/** A step: its model, and the tensors that its inputs and outputs are. */
const step = (name: string, inputs: Record<string, string>, outputs: Record<string, string>) => {
  const map = (kind: string, pairs: Record<string, string>) =>
    Object.entries(pairs).map(([key, tensor]) => `${kind} { key: "${key}" value: "${tensor}" }`)
  return `step { model_name: "${name}" model_version: -1 ${map("input_map", inputs).join(" ")} ${map("output_map", outputs).join(" ")} }`
}

/** Without files: a version of an ensemble is an empty directory. */
const ensemble = (name: string, maxBatchSize: number, tensors: string, ...steps: ReadonlyArray<string>): Stored => ({
  name,
  file: "",
  at: "1/.keep",
  config: `platform: "ensemble" max_batch_size: ${maxBatchSize}\n${tensors}ensemble_scheduling { ${steps.join(" ")} }`,
})

const single = "data_type: TYPE_FP32 dims: 1"
const singles = io("input", "X", single) + io("output", "Y", single)
const pairs = "data_type: TYPE_INT32 dims: 2"

const ensembles: ReadonlyArray<Stored> = [
  {
    name: "plus_optional",
    at: "1/model.js",
    file: `export default { execute: (requests) => requests.map(({ inputs: { X, AMOUNT } }) => {
      const sums = X.data.map((x, row) => x + (AMOUNT?.data[row] ?? 100))
      return { Y: new X.constructor("FP32", X.shape, new Uint8Array(sums.buffer)) }
    }) }`,
    config: `max_batch_size: 4 ${singles}${io("input", "AMOUNT", `${single} optional: true`)}`,
  },
  {
    name: "counting",
    at: "1/model.js",
    file: `export default { execute: function* ({ inputs: { X } }) {
      for (let i = 1; i <= X.data[0]; i++) yield { Y: new X.constructor("FP32", [1, 1], new Uint8Array(Float32Array.of(i).buffer)) }
    } }`,
    config: `max_batch_size: 4 model_transaction_policy { decoupled: true } ${singles}`,
  },
  ensemble(
    "in_steps",
    4,
    singles,
    step("bare", { X: "between" }, { Y: "Y" }),
    step("bare", { X: "X" }, { Y: "between" }),
  ),
  ensemble(
    "of_ensembles",
    4,
    singles,
    step("in_steps", { X: "X" }, { Y: "T" }),
    step("in_steps", { X: "T" }, { Y: "Y" }),
  ),
  ensemble(
    "diamond",
    4,
    io("input", "A", pairs) + io("input", "B", pairs) + io("output", "TWICE_A", pairs) + io("output", "TWICE_B", pairs),
    step("add_sub_int32", { A: "A", B: "B" }, { SUM: "sum", DIFFERENCE: "difference" }),
    step("add_sub_int32", { A: "sum", B: "difference" }, { SUM: "TWICE_A", DIFFERENCE: "TWICE_B" }),
  ),
  ensemble(
    "optional_step",
    4,
    singles + io("input", "Z", `${single} optional: true`),
    step("plus_optional", { X: "X", AMOUNT: "Z" }, { Y: "Y" }),
  ),
  ensemble(
    "without_batch",
    0,
    io("input", "X", "data_type: TYPE_FP32 dims: [ 1, 2, 3 ]") +
      io("output", "Y", "data_type: TYPE_FP32 dims: [ 1, 2, 3 ]"),
    step("pictures", { X: "X" }, { Y: "Y" }),
  ),
  { name: "pictures", file: identity("FP32", ["n", 2, 3]), config: one },
  ensemble(
    "open_shape",
    0,
    io("input", "X", "data_type: TYPE_FP32 dims: [ -1, -1 ]") +
      io("output", "Y", "data_type: TYPE_FP32 dims: [ -1, -1 ]"),
    step("fixed", { X: "X" }, { Y: "Y" }),
  ),
  ensemble("streaming", 4, singles, step("counting", { X: "X" }, { Y: "i" }), step("bare", { X: "i" }, { Y: "Y" })),
]

/** X FP32[1] → Y = X and the version, of the versions 1, 2, 3 and 10. */
const versioned: Readonly<Record<string, string>> = {
  latest: "",
  latest_two: "version_policy { latest { num_versions: 2 } }",
  all_versions: "version_policy: { all {} }",
  specific: "version_policy { specific { versions: [ 3, 1, 7 ] } }",
}

export const versions = [1, 2, 3, 10]

interface Broken {
  readonly config: string
  /** Default `1/model.onnx`, X → Y of FP32["n",1]. */
  readonly files?: { readonly [file: string]: string | Uint8Array }
  /** A part of it. */
  readonly reason: string | RegExp
}

/** With the place in the configuration where its text is illegal: line and column, from 1. */
const illegal: Readonly<Record<string, readonly [config: string, place: string]>> = {
  unknown_field: ['max_batch_size: 4\n  nam: "x"\n', '2:3: unknown field "nam" for message inference.ModelConfig'],
  unknown_field_within: [
    "input [\n  { name: 'X' },\n  { nam: 'Y' }\n]",
    '3:5: unknown field "nam" for message inference.ModelInput',
  ],
  unknown_datatype: ["input {\n  data_type: TYPE_X\n}", '2:14: unknown enum value "TYPE_X"'],
  fraction: ["max_batch_size: 1.5", '1:17: expected an integer, got "1.5"'],
  text_for_number: ["\nmax_batch_size: 'four'", "2:17: expected an integer"],
  out_of_range: ["max_batch_size:\n 99999999999", "2:2: "],
  twice: ["max_batch_size: 1\r\nmax_batch_size: 2\r\n", '2:1: non-repeated field "max_batch_size" is repeated'],
  two_schedulers: ["dynamic_batching {}\n\tsequence_batching {}", '2:2: oneof "scheduling_choice" is already set'],
  open_string: ["platform: 'p\n", "1:11: invalid U+000A in string"],
  open_message: ["input {\n  name: 'X'\n", "3:1: unexpected end of input"],
  no_comma: ["input [\n  { name: 'X' }\n  { name: 'Y' }\n]", '3:3: expected "," or "]"'],
  stray: ['platform: "onnxruntime_onnx"\n  @', '2:3: unexpected "@"'],
}

const tensors = (input: string, output = "data_type: TYPE_FP32 dims: 1"): string =>
  `max_batch_size: 4 ${io("input", "X", input)}${io("output", "Y", output)}`

const fp32 = "data_type: TYPE_FP32 dims: 1"

/** What the configuration says, the model file, or both. */
const wrong: Readonly<Record<string, Broken>> = {
  bad_batch: { config: "max_batch_size: -1", reason: "'max_batch_size' must be non-negative value for bad_batch" },
  bad_name: {
    config: 'name: "other"',
    reason: "unexpected directory name 'bad_name' for model 'other', directory name must equal model name",
  },
  bad_ensemble: {
    config: `platform: "ensemble" max_batch_size: 4 ${io("input", "X", "data_type: TYPE_FP32 dims: 1")}${io("output", "Y", "data_type: TYPE_FP32 dims: 1")}
      ensemble_scheduling { step { model_name: "nobody" input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } }`,
    reason: "ensemble bad_ensemble contains models that are not available or ambiguous: nobody",
  },
  bad_platform: { config: 'platform: "onnx"', reason: "unexpected platform type 'onnx' for bad_platform" },
  bad_pair: {
    config: 'platform: "onnxruntime_onnx" backend: "pytorch"',
    reason: "unexpected 'platform' and 'backend' pair, got:onnxruntime_onnx, pytorch",
  },
  no_backend: {
    config: 'backend: "fil"',
    reason: "unable to find backend library for backend 'fil', try specifying runtime on the model configuration.",
  },
  no_file: { config: "", files: { "1/weights.bin": "" }, reason: "must specify 'platform' or 'backend' for 'no_file'" },
  no_model: { config: 'backend: "onnxruntime"', files: { "1/weights.bin": "" }, reason: "/no_model/1/model.onnx'" },
  no_versions: {
    config: 'backend: "onnxruntime"',
    files: { "0/model.onnx": plus(1), "01/model.onnx": plus(1), "one/model.onnx": plus(1) },
    reason: "at least one version must be available under the version policy of model 'no_versions'",
  },
  no_such_version: {
    config: "version_policy { specific { versions: 7 } }",
    reason: "at least one version must be available under the version policy of model 'no_such_version'",
  },
  in_python: { config: "", files: { "1/model.py": "" }, reason: "model.py needs Triton's Python backend" },
  no_onnx: { config: "", files: { "1/model.onnx": "no model" }, reason: "/no_onnx/1/model.onnx is not an ONNX model" },
  brain_floats: {
    config: one,
    files: { "1/model.onnx": identity("BF16", [1]) },
    reason: "tensor 'X': onnxruntime-node has no TYPE_BF16 tensors",
  },
  broken_script: { config: tensors(fp32), files: { "1/model.js": "export default {" }, reason: "cannot load " },
  no_script: {
    config: tensors(fp32),
    files: { "1/model.js": "export default {}" },
    reason: "must export a script by default",
  },
  script_that_fails: {
    config: tensors(fp32),
    files: {
      "1/model.js": "export default { initialize: () => { throw new Error('no weights') }, execute: () => [] }",
    },
    reason: /initialize of [^"]*script_that_fails\/1\/model\.js has failed: no weights/,
  },
  dims: {
    config: `${io("input", "X", "data_type: TYPE_FP32 dims: [ 2 ]")}${io("output", "Y", "data_type: TYPE_FP32 dims: [ -1, 1 ]")}`,
    reason:
      "model 'dims', tensor 'X': the model expects 2 dimensions (shape [-1,1]) but the model configuration specifies 1 dimensions (shape [2])",
  },
  dims_in_batch: {
    config: tensors("data_type: TYPE_FP32 dims: 7"),
    reason:
      "model 'dims_in_batch', tensor 'X': the model expects 2 dimensions (shape [-1,1]) but the model configuration specifies 2 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape [-1,7])",
  },
  datatype: {
    config: tensors("data_type: TYPE_INT32 dims: 1"),
    reason:
      "model 'datatype', tensor 'X': the model expects datatype TYPE_FP32 but the model configuration specifies TYPE_INT32",
  },
  no_batch: {
    config: "max_batch_size: 2",
    files: { "1/model.onnx": identity("FP32", [2, 3]) },
    reason:
      "autofill failed for model 'no_batch': model does not support batching while non-zero max_batch_size is specified",
  },
  batch_in_file: {
    config: tensors(fp32),
    files: { "1/model.onnx": identity("FP32", [4, 1]) },
    reason:
      "model 'batch_in_file', tensor 'X': for the model to support batching the shape should have at least 1 dimension and the first dimension must be -1; but shape expected by the model is [4,1]",
  },
  unknown_input: {
    config: `${io("input", "Z", "data_type: TYPE_FP32 dims: -1")}${io("output", "Y", "data_type: TYPE_FP32 dims: -1")}`,
    reason: "unexpected inference input 'Z', allowed inputs are: X",
  },
  unknown_output: {
    config: `max_batch_size: 4 ${io("input", "X", fp32)}${io("output", "Z", fp32)}`,
    reason: "unexpected inference output 'Z', allowed outputs are: Y",
  },
  no_input_name: {
    config: `max_batch_size: 4 input { ${fp32} } ${io("output", "Y", fp32)}`,
    reason: "model input must specify 'name'",
  },
  no_extent: {
    config: tensors("data_type: TYPE_FP32 dims: 0"),
    reason: "model input 'X' dimension must be integer >= 1, or -1 to indicate a variable-size dimension",
  },
  reshape_size: {
    config: tensors("data_type: TYPE_FP32 dims: 4 reshape { shape: [ 3 ] }"),
    reason: "model input 'X' has different size for dims and reshape",
  },
  image_format: { config: tensors(`${fp32} format: FORMAT_NHWC`), reason: "model input 'X' NHWC/NCHW require 3 dims" },
  shape_tensor: {
    config: tensors(`${fp32} is_shape_tensor: true`),
    reason: "model input 'X' shape tensors are only supported for TensorRT platform",
  },
  no_labels: { config: tensors(fp32, `${fp32} label_filename: "labels.txt"`), reason: "/no_labels/labels.txt: ENOENT" },
  on_gpu: {
    config: "instance_group { kind: KIND_GPU gpus: [ 99 ] }",
    reason: /has kind KIND_GPU but server does not support GPUs|invalid or unsupported gpu id 99/,
  },
  gpus_of_cpu: {
    config: "instance_group { kind: KIND_CPU gpus: [ 0 ] }",
    reason: "instance group gpus_of_cpu_0 of model gpus_of_cpu has kind KIND_CPU but specifies one or more GPUs",
  },
  all_passive: {
    config: "instance_group { kind: KIND_CPU passive: true }",
    reason: "all its instance groups are passive",
  },
  preferred: {
    config: "max_batch_size: 4 dynamic_batching { preferred_batch_size: 5 }",
    reason: "dynamic batching preferred size must be <= max batch size for preferred",
  },
  preferred_none: {
    config: "max_batch_size: 4 dynamic_batching { preferred_batch_size: 0 }",
    reason: "dynamic batching preferred size must be positive for preferred_none",
  },
  default_level: {
    config: "max_batch_size: 4 dynamic_batching { priority_levels: 2 default_priority_level: 3 }",
    reason: "default priority level must be in range [1, 2] for default_level",
  },
  ordered_levels: {
    config:
      "max_batch_size: 4 dynamic_batching { preserve_ordering: true priority_levels: 2 default_priority_level: 1 }",
    reason: "Only one priority level is allowed when 'preserve_ordering' is true for ordered_levels",
  },
  sequences: { config: "max_batch_size: 4 sequence_batching {}", reason: "sequence batching is not supported" },
  execution_mode: {
    config: 'parameters { key: "execution_mode" value { string_value: "2" } }',
    reason: "parameter 'execution_mode' must be an integer from 0 to 1, but '2' was given",
  },
  accelerator: {
    config: 'optimization { execution_accelerators { cpu_execution_accelerator { name: "openvino" } } }',
    reason: "OpenVINO Execution Accelerator is not enabled",
  },
  warm_up: {
    config: `${one} model_warmup { name: "w" batch_size: 1 inputs { key: "Z" value { ${fp32} zero_data: true } } }`,
    reason: "warm-up 'w' of model 'warm_up', input 'Z': there is no such input",
  },
}

/** Models that are not there, with what is wrong with them. */
export const broken: Readonly<Record<string, Broken>> = {
  ...wrong,
  ...Object.fromEntries(
    Object.entries(illegal).map(([name, [config, place]]) => [
      name,
      { config, reason: `/${name}/config.pbtxt:${place}` },
    ]),
  ),
}

/** Versions that the index has of one of them. */
export const versionOf = ({ files = { "1/model.onnx": "" } }: Broken): string | undefined =>
  Object.keys(files).some((file) => file.startsWith("1/")) ? "1" : undefined

const write = (fixture: RepositoryFixture): void => {
  for (const { name, file, at = "1/model.onnx", config, more = {} } of [...ready, ...ensembles]) {
    fixture.write(`${name}/${at}`, file)
    if (config !== undefined) fixture.write(`${name}/config.pbtxt`, config)
    for (const [path, content] of Object.entries(more)) fixture.write(`${name}/${path}`, content)
  }
  for (const [name, policy] of Object.entries(versioned)) {
    for (const version of versions) fixture.write(`${name}/${version}/model.onnx`, addingOne(version))
    fixture.write(`${name}/config.pbtxt`, policy + one)
  }
  for (const [name, { config, files = { "1/model.onnx": plus(1) } }] of Object.entries(broken)) {
    fixture.write(`${name}/config.pbtxt`, config)
    for (const [file, content] of Object.entries(files)) fixture.write(`${name}/${file}`, content)
  }
  fixture.adding("idle", 1, 1)
}

/** X FP32[1] → Y, without a batch dimension. */
const addingOne = (amount: number): Uint8Array =>
  model({
    inputs: [value("X", "FP32", [1])],
    outputs: [value("Y", "FP32", [1])],
    nodes: [node("Add", ["X", "AMOUNT"], ["Y"])],
    initializers: [initializer("AMOUNT", "FP32", [1], Float32Array.of(amount))],
  })

const load = [...[...ready, ...ensembles].map(({ name }) => name), ...Object.keys(versioned), ...Object.keys(broken)]

/** All but `idle` are loaded at the start; callers may load and unload. */
export const layer = Layer.unwrap(
  Effect.map(repository, (fixture) => {
    write(fixture)
    return Repository.layer({ directories: [fixture.path], control: "explicit", load, exitOnError: false })
  }),
)
