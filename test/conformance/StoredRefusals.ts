/** Configurations and files of the repository that the cases ask which are refused: each a model that is not there, and says why. */
import { addSub } from "../fixtures/onnx.ts"
import { plus } from "../fixtures/repository.ts"
import type { RepositoryLineName } from "./RepositoryLines.ts"
import { echo, identity, io, one, step } from "./StoredParts.ts"
import { misscheduled } from "./StoredScheduling.ts"

export interface Broken {
  readonly config: string | Uint8Array
  /** Default `1/model.onnx`, X → Y of FP32["n",1]. */
  readonly files?: { readonly [file: string]: string | Uint8Array }
  /** A part of it. */
  readonly reason: string | RegExp
  readonly proves?: ReadonlyArray<RepositoryLineName>
}

/** With the place in the configuration where its text is illegal: line and column, from 1. */
const illegal: Readonly<Record<string, readonly [config: string, place: string, proves: RepositoryLineName]>> = {
  unknown_field: [
    'max_batch_size: 4\n  nam: "x"\n',
    '2:3: unknown field "nam" for message inference.ModelConfig',
    "A11.parser.unknown-field",
  ],
  unknown_field_within: [
    "input [\n  { name: 'X' },\n  { nam: 'Y' }\n]",
    '3:5: unknown field "nam" for message inference.ModelInput',
    "A11.parser.unknown-field-within",
  ],
  unknown_datatype: ["input {\n  data_type: TYPE_X\n}", '2:14: unknown enum value "TYPE_X"', "A11.parser.unknown-enum"],
  fraction: ["max_batch_size: 1.5", '1:17: expected an integer, got "1.5"', "A11.parser.number"],
  text_for_number: ["\nmax_batch_size: 'four'", "2:17: expected an integer", "A11.parser.number"],
  out_of_range: ["max_batch_size:\n 99999999999", "2:2: ", "A11.parser.range"],
  twice: [
    "max_batch_size: 1\r\nmax_batch_size: 2\r\n",
    '2:1: non-repeated field "max_batch_size" is repeated',
    "A11.parser.twice",
  ],
  two_schedulers: [
    "dynamic_batching {}\n\tsequence_batching {}",
    '2:2: oneof "scheduling_choice" is already set',
    "A11.parser.oneof",
  ],
  open_string: ["platform: 'p\n", "1:11: invalid U+000A in string", "A11.parser.open"],
  open_message: ["input {\n  name: 'X'\n", "3:1: unexpected end of input", "A11.parser.open"],
  no_comma: ["input [\n  { name: 'X' }\n  { name: 'Y' }\n]", '3:3: expected "," or "]"', "A11.parser.comma"],
  stray: ['platform: "onnxruntime_onnx"\n  @', '2:3: unexpected "@"', "A11.parser.stray"],
  extension: ["max_batch_size: 1\n[foo.bar]: 1", '2:9: unknown extension "[foo.bar]"', "A11.parser.extension"],
  any: [
    "[type.googleapis.com/inference.ModelInput] { name: 'X' }",
    'unknown extension "[type.googleapis.com/inference.ModelInput]"',
    "A11.parser.extension",
  ],
  field_number: ["max_batch_size: 1\n5: 1", "2:1: cannot specify field by number: 5", "A11.parser.field-number"],
  two_separators: ["max_batch_size: 1;;", '1:19: expected a field name, got ";"', "A11.parser.separators-twice"],
}

const tensors = (input: string, output = "data_type: TYPE_FP32 dims: 1"): string =>
  `max_batch_size: 4 ${io("input", "X", input)}${io("output", "Y", output)}`

const fp32 = "data_type: TYPE_FP32 dims: 1"

const script = (config: string) => ({ config, files: { "1/model.js": echo } })

/** What the configuration says, the model file, or both. */
const wrong: Readonly<Record<string, Broken>> = {
  bad_batch: {
    config: "max_batch_size: -1",
    reason: "'max_batch_size' must be non-negative value for bad_batch",
    proves: ["A11.max-batch-size.negative"],
  },
  bad_name: {
    config: 'name: "other"',
    reason: "unexpected directory name 'bad_name' for model 'other', directory name must equal model name",
    proves: ["A11.name.other"],
  },
  bad_ensemble: {
    config: `platform: "ensemble" max_batch_size: 4 ${io("input", "X", "data_type: TYPE_FP32 dims: 1")}${io("output", "Y", "data_type: TYPE_FP32 dims: 1")}
      ensemble_scheduling { step { model_name: "nobody" input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } }`,
    reason: "ensemble bad_ensemble contains models that are not available or ambiguous: nobody",
    proves: ["A11.ensemble.unknown-model"],
  },
  bad_platform: {
    config: 'platform: "onnx"',
    reason: "unexpected platform type 'onnx' for bad_platform",
    proves: ["A11.platform.unknown"],
  },
  inherited_platform: {
    config: 'platform: "constructor"',
    reason: "unexpected platform type 'constructor' for inherited_platform",
    proves: ["A11.platform.unknown"],
  },
  bad_pair: {
    config: 'platform: "onnxruntime_onnx" backend: "pytorch"',
    reason: "unexpected 'platform' and 'backend' pair, got:onnxruntime_onnx, pytorch",
    proves: ["A11.platform.pair"],
  },
  no_backend: {
    config: 'backend: "fil"',
    reason: "unable to find backend library for backend 'fil', try specifying runtime on the model configuration.",
    proves: ["A11.platform.absent"],
  },
  no_file: {
    config: "",
    files: { "1/weights.bin": "" },
    reason: "must specify 'platform' or 'backend' for 'no_file'",
    proves: ["A11.platform.neither"],
  },
  no_model: {
    config: 'backend: "onnxruntime"',
    files: { "1/weights.bin": "" },
    reason: "/no_model/1/model.onnx'",
    proves: ["A11.validation.absent"],
  },
  no_versions: {
    config: 'backend: "onnxruntime"',
    files: { "0/model.onnx": plus(1), "01/model.onnx": plus(1), "one/model.onnx": plus(1) },
    reason: "at least one version must be available under the version policy of model 'no_versions'",
    proves: ["A6.version.directories", "A6.version.none"],
  },
  no_such_version: {
    config: "version_policy { specific { versions: 7 } }",
    reason: "at least one version must be available under the version policy of model 'no_such_version'",
    proves: ["A6.version.none"],
  },
  in_python: {
    config: "",
    files: { "1/model.py": "" },
    reason: "model.py needs Triton's Python backend",
    proves: ["A11.platform.python"],
  },
  no_onnx: {
    config: "",
    files: { "1/model.onnx": "no model" },
    reason: "/no_onnx/1/model.onnx is not an ONNX model",
    proves: ["A11.validation.file"],
  },
  brain_floats: {
    config: one,
    files: { "1/model.onnx": identity("BF16", [1]) },
    reason: "tensor 'X': onnxruntime-node has no TYPE_BF16 tensors",
    proves: ["A11.io.data-type.bf16"],
  },
  broken_script: {
    config: tensors(fp32),
    files: { "1/model.js": "export default {" },
    reason: "cannot load ",
    proves: ["A12.script.broken"],
  },
  no_script: {
    config: tensors(fp32),
    files: { "1/model.js": "export default {}" },
    reason: "must export a script by default",
    proves: ["A12.script.export"],
  },
  script_that_fails: {
    config: tensors(fp32),
    files: {
      "1/model.js": "export default { initialize: () => { throw new Error('no weights') }, execute: () => [] }",
    },
    reason: /initialize of [^"]*script_that_fails\/1\/model\.js has failed: no weights/,
    proves: ["A12.script.initialize"],
  },
  dims: {
    config: `${io("input", "X", "data_type: TYPE_FP32 dims: [ 2 ]")}${io("output", "Y", "data_type: TYPE_FP32 dims: [ -1, 1 ]")}`,
    reason:
      "model 'dims', tensor 'X': the model expects 2 dimensions (shape [-1,1]) but the model configuration specifies 1 dimensions (shape [2])",
    proves: ["A11.validation.rank"],
  },
  dims_in_batch: {
    config: tensors("data_type: TYPE_FP32 dims: 7"),
    reason:
      "model 'dims_in_batch', tensor 'X': the model expects 2 dimensions (shape [-1,1]) but the model configuration specifies 2 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape [-1,7])",
    proves: ["A11.validation.batch"],
  },
  datatype: {
    config: tensors("data_type: TYPE_INT32 dims: 1"),
    reason:
      "model 'datatype', tensor 'X': the model expects datatype TYPE_FP32 but the model configuration specifies TYPE_INT32",
    proves: ["A11.validation.datatype"],
  },
  no_batch: {
    config: "max_batch_size: 2",
    files: { "1/model.onnx": identity("FP32", [2, 3]) },
    reason:
      "autofill failed for model 'no_batch': model does not support batching while non-zero max_batch_size is specified",
    proves: ["A11.completion.conflict"],
  },
  batch_in_file: {
    config: tensors(fp32),
    files: { "1/model.onnx": identity("FP32", [4, 1]) },
    reason:
      "model 'batch_in_file', tensor 'X': for the model to support batching the shape should have at least 1 dimension and the first dimension must be -1; but shape expected by the model is [4,1]",
    proves: ["A11.validation.no-batch"],
  },
  unknown_input: {
    config: `${io("input", "Z", "data_type: TYPE_FP32 dims: -1")}${io("output", "Y", "data_type: TYPE_FP32 dims: -1")}`,
    reason: "unexpected inference input 'Z', allowed inputs are: X",
    proves: ["A11.validation.input"],
  },
  unknown_output: {
    config: `max_batch_size: 4 ${io("input", "X", fp32)}${io("output", "Z", fp32)}`,
    reason: "unexpected inference output 'Z', allowed outputs are: Y",
    proves: ["A11.validation.output"],
  },
  no_input_name: {
    config: `max_batch_size: 4 input { ${fp32} } ${io("output", "Y", fp32)}`,
    reason: "model input must specify 'name'",
    proves: ["A11.io.name"],
  },
  no_extent: {
    config: tensors("data_type: TYPE_FP32 dims: 0"),
    reason: "model input 'X' dimension must be integer >= 1, or -1 to indicate a variable-size dimension",
    proves: ["A11.io.dims.zero"],
  },
  too_large: {
    ...script(tensors("data_type: TYPE_FP32 dims: 9007199254740992")),
    reason: "model input 'X' dimension must be at most 9007199254740991",
    proves: ["A11.io.dims.most"],
  },
  reshape_size: {
    config: tensors("data_type: TYPE_FP32 dims: 4 reshape { shape: [ 3 ] }"),
    reason: "model input 'X' has different size for dims and reshape",
    proves: ["A11.io.reshape.size"],
  },
  image_format: {
    config: tensors(`${fp32} format: FORMAT_NHWC`),
    reason: "model input 'X' NHWC/NCHW require 3 dims",
    proves: ["A11.io.format.dims"],
  },
  shape_tensor: {
    config: tensors(`${fp32} is_shape_tensor: true`),
    reason: "model input 'X' shape tensors are only supported for TensorRT platform",
    proves: ["A11.io.shape-tensor"],
  },
  no_labels: {
    config: tensors(fp32, `${fp32} label_filename: "labels.txt"`),
    reason: "/no_labels/labels.txt: ENOENT",
    proves: ["A11.io.labels.absent"],
  },
  on_gpu: {
    config: "instance_group { kind: KIND_GPU gpus: [ 99 ] }",
    reason: /has kind KIND_GPU but server does not support GPUs|invalid or unsupported gpu id 99/,
    proves: ["A11.group.gpu"],
  },
  gpus_of_cpu: {
    config: "instance_group { kind: KIND_CPU gpus: [ 0 ] }",
    reason: "instance group gpus_of_cpu_0 of model gpus_of_cpu has kind KIND_CPU but specifies one or more GPUs",
    proves: ["A11.group.gpus"],
  },
  all_passive: {
    config: "instance_group { kind: KIND_CPU passive: true }",
    reason: "all its instance groups are passive",
    proves: ["A11.group.passive"],
  },
  preferred: {
    config: "max_batch_size: 4 dynamic_batching { preferred_batch_size: 5 }",
    reason: "dynamic batching preferred size must be <= max batch size for preferred",
    proves: ["A11.batching.preferred.range"],
  },
  preferred_none: {
    config: "max_batch_size: 4 dynamic_batching { preferred_batch_size: 0 }",
    reason: "dynamic batching preferred size must be positive for preferred_none",
    proves: ["A11.batching.preferred.range"],
  },
  default_level: {
    config: "max_batch_size: 4 dynamic_batching { priority_levels: 2 default_priority_level: 3 }",
    reason: "default priority level must be in range [1, 2] for default_level",
    proves: ["A11.batching.default-level.range"],
  },
  ordered_levels: {
    config:
      "max_batch_size: 4 dynamic_batching { preserve_ordering: true priority_levels: 2 default_priority_level: 1 }",
    reason: "Only one priority level is allowed when 'preserve_ordering' is true for ordered_levels",
    proves: ["A11.batching.ordering.levels"],
  },
  sequences: {
    config: "max_batch_size: 4 sequence_batching {}",
    reason: "sequence batching is not supported",
    proves: ["A11.sequence"],
  },
  execution_mode: {
    config: 'parameters { key: "execution_mode" value { string_value: "2" } }',
    reason: "parameter 'execution_mode' must be an integer from 0 to 1, but '2' was given",
    proves: ["A11.parameters.onnx.range"],
  },
  accelerator: {
    config: 'optimization { execution_accelerators { cpu_execution_accelerator { name: "openvino" } } }',
    reason: "OpenVINO Execution Accelerator is not enabled",
    proves: ["A11.optimization.accelerators"],
  },
  warm_up_of_too_much: {
    config: `${one} model_warmup { name: "w" inputs { key: "X" value { data_type: TYPE_FP32 dims: [ 1000000, 1000000000 ] zero_data: true } } }`,
    reason:
      "warm-up 'w' of model 'warm_up_of_too_much', input 'X': a tensor of FP32[1000000,1000000000] cannot be made: ",
    proves: ["A11.warm-up.failure"],
  },
  warm_up: {
    config: `${one} model_warmup { name: "w" batch_size: 1 inputs { key: "Z" value { ${fp32} zero_data: true } } }`,
    reason: "warm-up 'w' of model 'warm_up', input 'Z': there is no such input",
    proves: ["A11.warm-up.failure"],
  },
  twice_the_same: {
    config: `${one}${io("input", "X", fp32)}${io("input", "X", fp32)}${io("output", "Y", fp32)}`,
    reason: "model input 'X' of twice_the_same is given twice",
    proves: ["A11.io.twice"],
  },
  no_datatype: {
    ...script(tensors("dims: 1")),
    reason: "model input 'X' must specify 'data_type'",
    proves: ["A11.io.data-type.absent"],
  },
  odd_datatype: {
    ...script(tensors("data_type: 99 dims: 1")),
    reason: "model input 'X' has unexpected data_type 99",
    proves: ["A11.io.data-type.unknown"],
  },
  odd_output: {
    ...script(tensors(fp32, "data_type: -1 dims: 1")),
    reason: "model output 'Y' has unexpected data_type -1",
    proves: ["A11.io.data-type.unknown"],
  },
  odd_format: {
    ...script(tensors("data_type: TYPE_FP32 dims: [ 1, 2, 3 ] format: 9")),
    reason: "model input 'X' has unexpected format 9",
    proves: ["A11.io.format.dims"],
  },
  no_dims: {
    ...script(tensors("data_type: TYPE_FP32")),
    reason: "model input 'X' must specify 'dims'",
    proves: ["A11.io.dims.absent"],
  },
  reshape_variables: {
    config: tensors("data_type: TYPE_FP32 dims: [ -1, -1 ] reshape { shape: [ -1 ] }"),
    reason: "model input 'X' has different number of variable-size dimensions for dims and reshape",
    proves: ["A11.io.reshape.variables"],
  },
  not_optional: {
    config: tensors(`${fp32} optional: true`),
    reason: "the model requires it but the model configuration has it as optional",
    proves: ["A11.io.optional.required"],
  },
  non_linear: {
    config: tensors(`${fp32} is_non_linear_format_io: true`),
    reason: "model input 'X' Non-linear IO format is only supported for TensorRT platform",
    proves: ["A11.io.non-linear"],
  },
  labels_outside: {
    config: tensors(fp32, `${fp32} label_filename: "../fixed/labels.txt"`),
    reason: "file '../fixed/labels.txt' is not below ",
    proves: ["A11.io.labels.outside"],
  },
  file_outside: {
    config: 'default_model_filename: "../../bare/1/model.onnx"',
    reason: "file '../../bare/1/model.onnx' is not below ",
    proves: ["A11.default-model-filename.outside"],
  },
  negative_count: {
    ...script(`${tensors(fp32)} instance_group { count: -1 }`),
    reason:
      "instance group negative_count_0 of model negative_count must have at least one instance, but its count is -1",
    proves: ["A11.group.count.negative"],
  },
  many_instances: {
    ...script(`${tensors(fp32)} instance_group [ { count: 1 }, { count: 2147483647 } ]`),
    reason: "instance groups of model many_instances have 2147483648 instances together, at most 1024 are loaded",
    proves: ["A11.group.count.most"],
  },
  odd_kind: {
    ...script(`${tensors(fp32)} instance_group { kind: 9 }`),
    reason: "instance group odd_kind_0 of model odd_kind has unexpected kind 9",
    proves: ["A11.group.kind"],
  },
  missing_input: {
    config: `max_batch_size: 4 ${io("input", "A", fp32)}${io("output", "SUM", fp32)}`,
    files: { "1/model.onnx": addSub("FP32", ["n", 1]) },
    reason: "unable to load model 'missing_input', the model expects 2 inputs but the model configuration specifies 1",
    proves: ["A11.validation.inputs"],
  },
  not_utf8: {
    config: Buffer.from(`${tensors(fp32)} parameters { key: "k" value { string_value: "\u00e9" } }`, "latin1"),
    reason: "/not_utf8/config.pbtxt: it is not UTF-8",
    proves: ["A11.parser.encoding"],
  },
}

/** Ensembles of models that are there. */
const ensemble = (config: string, reason: string, ...proves: ReadonlyArray<RepositoryLineName>): Broken => ({
  config,
  files: { "1/.keep": "" },
  reason,
  proves,
})

const chain = (...steps: ReadonlyArray<string>) =>
  `platform: "ensemble" ${tensors(fp32)} ensemble_scheduling { ${steps.join(" ")} }`

const simple = step("bare", { X: "X" }, { Y: "Y" })

const ensembles: Readonly<Record<string, Broken>> = {
  circle: ensemble(
    chain(step("circle", { X: "X" }, { Y: "Y" })),
    "circular dependency between ensembles: circle -> ... -> circle -> circle",
    "A11.ensemble.circle",
  ),
  of_broken: ensemble(
    chain(step("no_onnx", { X: "X" }, { Y: "Y" })),
    "ensemble 'of_broken' depends on 'no_onnx' which has no loaded version",
    "A6.ensemble.failure",
  ),
  no_ensemble: {
    ...script(`${tensors(fp32)} ensemble_scheduling { ${simple} }`),
    reason: "ensemble scheduling cannot be set for model 'no_ensemble' whose platform is not ensemble",
    proves: ["A11.ensemble.platform"],
  },
  no_scheduling: ensemble(
    `platform: "ensemble" ${tensors(fp32)}`,
    "ensemble scheduling must be set for ensemble no_scheduling whose platform is ensemble",
    "A11.ensemble.platform",
  ),
  no_step: ensemble(chain(), "must specify 'step' for ensemble 'no_step'", "A11.ensemble.no-step"),
  step_of_nothing: ensemble(
    chain(step("", { X: "X" }, { Y: "Y" })),
    "must specify 'model_name' in step 0 of ensemble 'step_of_nothing'",
    "A11.ensemble.no-model",
  ),
  no_input_map: ensemble(
    chain(simple, step("bare", {}, { Y: "Z" })),
    "must specify 'input_map' in step 1 of ensemble 'no_input_map'",
    "A11.ensemble.no-map",
  ),
  no_output_map: ensemble(
    chain(step("bare", { X: "X" }, {})),
    "must specify 'output_map' in step 0 of ensemble 'no_output_map'",
    "A11.ensemble.no-map",
  ),
  unused_input: ensemble(
    `${chain(simple)} ${io("input", "Z", fp32)}`,
    "ensemble input 'Z' for ensemble unused_input' is not used",
    "A11.ensemble.unused-input",
  ),
  unused_output: ensemble(
    `${chain(simple)} ${io("output", "Z", fp32)}`,
    "ensemble output 'Z' for ensemble unused_output' is not used",
    "A11.ensemble.unused-output",
  ),
  unused_tensor: ensemble(
    chain(simple, step("bare", { X: "X" }, { Y: "t" })),
    "ensemble tensor 't' is unused in ensemble 'unused_tensor'",
    "A11.ensemble.unused-tensor",
  ),
  unwritten: ensemble(
    `${chain(simple, step("bare", { X: "nowhere" }, { Y: "Z" }))} ${io("output", "Z", fp32)}`,
    "output 'Z' for ensemble 'unwritten' is not written: at least one of its depending tensors, 'nowhere', is not connected",
    "A11.ensemble.unwritten",
  ),
  written_twice: ensemble(
    chain(simple, simple),
    "ensemble tensor 'Y' can appear in an output map only once for ensemble 'written_twice' step 1",
    "A11.ensemble.output-twice",
  ),
  other_datatype: ensemble(
    chain(step("bare", { X: "X" }, { Y: "t" }), step("scalars", { X: "t" }, { Y: "Y" })),
    "in ensemble other_datatype, ensemble tensor t: inconsistent data type: TYPE_FP32 is inferred from model bare while TYPE_FP64 is inferred from model scalars",
    "A11.ensemble.datatype",
  ),
  other_shape: ensemble(
    chain(step("bare", { X: "X" }, { Y: "t" }), step("labelled", { X: "t" }, { Y: "Y" })).replace(
      "max_batch_size: 4",
      "max_batch_size: 2",
    ),
    "in ensemble other_shape, ensemble tensor t: inconsistent shape: [-1,1] is inferred from model bare while [-1,3] is inferred from model labelled",
    "A11.ensemble.shape",
  ),
  fewer_rows: ensemble(
    chain(step("labelled", { X: "X" }, { Y: "Y" })),
    "ensemble fewer_rows allows maximum batch size 4, but it contains model labelled which only allows maximum batch size to be 2",
    "A11.ensemble.batch",
  ),
  no_such_input: ensemble(
    chain(step("bare", { X: "X", Z: "X" }, { Y: "Y" })),
    "in ensemble no_such_input, ensemble tensor X is mapping to non-existing input Z in model bare",
    "A11.ensemble.non-existing",
  ),
  no_such_output: ensemble(
    chain(step("bare", { X: "X" }, { Z: "Y" })),
    "in ensemble no_such_output, ensemble tensor Y is mapped from non-existing output Z in model bare",
    "A11.ensemble.non-existing",
  ),
  unmapped: ensemble(
    chain(
      step("add_sub_fp32", { A: "t" }, { SUM: "u" }),
      step("bare", { X: "X" }, { Y: "t" }),
      step("bare", { X: "u" }, { Y: "Y" }),
    ),
    "in ensemble unmapped, ",
    "A11.ensemble.unmapped",
  ),
  other_version: ensemble(
    chain(simple.replace("model_version: -1", "model_version: 7")),
    "ensemble 'other_version' depends on 'bare' whose required version 7 is not loaded",
    "A11.ensemble.version.absent",
  ),
  with_group: ensemble(
    `${chain(simple)} instance_group { count: 1 }`,
    "instance group should not be specified for ensemble 'with_group'",
    "A11.ensemble.fields",
  ),
  with_optimization: ensemble(
    `${chain(simple)} optimization {}`,
    "optimization should not be specified for ensemble 'with_optimization'",
    "A11.ensemble.fields",
  ),
  with_warm_up: ensemble(
    `${chain(simple)} model_warmup { name: "w" }`,
    "model_warmup can not be specified for ensemble 'with_warm_up'",
    "A11.ensemble.fields",
  ),
}

/** Models that are not there, with what is wrong with them. */
export const broken: Readonly<Record<string, Broken>> = {
  ...wrong,
  ...ensembles,
  ...misscheduled,
  ...Object.fromEntries(
    Object.entries(illegal).map(([name, [config, place, proves]]): [string, Broken] => [
      name,
      { config, reason: place.startsWith("unknown") ? place : `/${name}/config.pbtxt:${place}`, proves: [proves] },
    ]),
  ),
}

/** Versions that the index has of one of them. */
export const versionOf = ({ files = { "1/model.onnx": "" } }: Broken): string | undefined =>
  Object.keys(files).some((file) => file.startsWith("1/")) ? "1" : undefined
