/** Models with an invalid configuration or file, in the repository of the cases. */
import { addSub } from "../fixtures/onnx.ts"
import { plus } from "../fixtures/repository.ts"
import type { BrokenModel } from "./BrokenModel.ts"
import { fp32, identity, io, one, script, tensors } from "./StoredParts.ts"

/** Models with an error in the configuration, in the model file, or in both. */
export const wrongModels: Readonly<Record<string, BrokenModel>> = {
  bad_batch: {
    config: "max_batch_size: -1",
    reason: "'max_batch_size' must be non-negative value for bad_batch",
    isUnreadable: true,
    proves: ["A11.max-batch-size.negative"],
  },
  bad_name: {
    config: 'name: "other"',
    reason: "unexpected directory name 'bad_name' for model 'other', directory name must equal model name",
    isUnreadable: true,
    proves: ["A11.name.other"],
  },
  bad_ensemble: {
    config: `platform: "ensemble" ${tensors(fp32)}
      ensemble_scheduling { step { model_name: "nobody" input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } }`,
    reason: "ensemble bad_ensemble contains models that are not available or ambiguous: nobody",
    proves: ["A11.ensemble.unknown-model"],
  },
  bad_platform: {
    config: 'platform: "onnx"',
    reason: "unexpected platform type 'onnx' for bad_platform",
    isUnreadable: true,
    proves: ["A11.platform.unknown"],
  },
  inherited_platform: {
    config: 'platform: "constructor"',
    reason: "unexpected platform type 'constructor' for inherited_platform",
    isUnreadable: true,
    proves: ["A11.platform.unknown"],
  },
  bad_pair: {
    config: 'platform: "onnxruntime_onnx" backend: "pytorch"',
    reason: "unexpected 'platform' and 'backend' pair, got:onnxruntime_onnx, pytorch",
    isUnreadable: true,
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
    reason:
      "Invalid model name: Could not determine backend for model 'no_file' with no backend in model configuration. Expected model name of the form 'model.<backend_name>'.",
    isUnreadable: true,
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
    config: 'backend: "python"',
    files: { "1/other.py": "" },
    reason: "Failed to preinitialize Python stub: Python model file not found in '",
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
    reason: "must export a script from ModelScript",
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
  dims_without_rank: {
    config: `${io("input", "X", "data_type: TYPE_FP32 dims: 3")}${io("output", "Y", "data_type: TYPE_FP32 dims: 3")}`,
    files: { "1/model.onnx": identity("FP32") },
    reason:
      "model 'dims_without_rank', tensor 'X': the model expects 0 dimensions (shape []) but the model configuration specifies 1 dimensions (shape [3])",
    isWhole: true,
    status: "Invalid argument",
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
    reason: "model input NHWC/NCHW require 3 dims for image_format",
    proves: ["A11.io.format.dims"],
  },
  shape_tensor: {
    config: tensors(`${fp32} is_shape_tensor: true`),
    reason: "shape tensors are only supported for TensorRT platform for shape_tensor",
    proves: ["A11.io.shape-tensor"],
  },
  no_labels: {
    config: tensors(fp32, `${fp32} label_filename: "labels.txt"`),
    reason: /failed to open text file for read [^ ]*\/no_labels\/labels\.txt: No such file or directory/,
    proves: ["A11.io.labels.absent"],
  },
  on_gpu: {
    config: "instance_group { kind: KIND_GPU gpus: [ 99 ] }",
    reason: "instance group on_gpu_0 of model on_gpu specifies invalid or unsupported gpu id 99. Available GPUs: ",
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
    isUnreadable: true,
    proves: ["A11.batching.preferred.range"],
  },
  preferred_none: {
    config: "max_batch_size: 4 dynamic_batching { preferred_batch_size: 0 }",
    reason: "dynamic batching preferred size must be positive for preferred_none",
    isUnreadable: true,
    proves: ["A11.batching.preferred.range"],
  },
  default_level: {
    config: "max_batch_size: 4 dynamic_batching { priority_levels: 2 default_priority_level: 3 }",
    reason: "default priority level must be in range [1, 2] for default_level",
    isUnreadable: true,
    proves: ["A11.batching.default-level.range"],
  },
  ordered_levels: {
    config:
      "max_batch_size: 4 dynamic_batching { preserve_ordering: true priority_levels: 2 default_priority_level: 1 }",
    reason: "Only one priority level is allowed when 'preserve_ordering' is true for ordered_levels",
    isUnreadable: true,
    proves: ["A11.batching.ordering.levels"],
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
    config: `${one} model_warmup { name: "w" batch_size: 1 inputs { key: "X" value { data_type: TYPE_FP32 dims: [ 1000000, 1000000000 ] zero_data: true } } }`,
    reason: "cannot make a tensor FP32[1000000,1000000000] for input 'X': ",
    proves: ["A11.warm-up.failure"],
  },
  warm_up: {
    config: `${one} model_warmup { name: "w" batch_size: 1 inputs { key: "X" value { ${fp32} zero_data: true } } inputs { key: "Z" value { ${fp32} zero_data: true } } }`,
    reason: "warm-up 'w' of model 'warm_up', input 'Z': the model has no such input",
    proves: ["A11.warm-up.failure"],
  },
  twice_the_same: {
    config: `${one}${io("input", "X", fp32)}${io("input", "X", fp32)}${io("output", "Y", fp32)}`,
    reason: "model input 'X' of twice_the_same is given more than once",
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
    reason: "Non-linear IO format is only supported for the TensorRT platform for non_linear",
    proves: ["A11.io.non-linear"],
  },
  labels_outside: {
    config: tensors(fp32, `${fp32} label_filename: "../fixed/labels.txt"`),
    reason: "file '../fixed/labels.txt' is not below ",
    proves: ["A11.io.labels.outside"],
  },
  file_outside: {
    config: 'backend: "onnxruntime" default_model_filename: "../../bare/1/model.onnx"',
    reason: "file '../../bare/1/model.onnx' is not below ",
    proves: ["A11.default-model-filename.outside"],
  },
  group_with_profile: {
    ...script(`${tensors(fp32)} instance_group { kind: KIND_CPU profile: "1" }`),
    reason:
      "instance group group_with_profile_0 of model group_with_profile and platform specifies profile field which is only supported for TensorRT models",
    isWhole: true,
    status: "Invalid argument",
    proves: ["A11.group.profile"],
  },
  many_instances: {
    ...script(`${tensors(fp32)} instance_group [ { count: 1 }, { count: 2147483647 } ]`),
    reason: "instance groups of model many_instances have 2147483648 instances in total, at most 1024 are allowed",
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
    isUnreadable: true,
    proves: ["A11.parser.encoding"],
  },
}
