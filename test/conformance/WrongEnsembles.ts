/** Invalid ensembles of available models, in the repository of the cases. */
import type { BrokenModel } from "./BrokenModel.ts"
import type { RepositoryLineName } from "./RepositoryLines.ts"
import { fp32, io, script, step, tensors } from "./StoredParts.ts"

const ensemble = (config: string, reason: string, ...proves: ReadonlyArray<RepositoryLineName>): BrokenModel => ({
  config,
  files: { "1/.keep": "" },
  reason,
  proves,
})

/** Wrong without a look at the models of its steps. */
const misconfigured = (...given: Parameters<typeof ensemble>): BrokenModel => ({
  ...ensemble(...given),
  isUnreadable: true,
  isWhole: true,
})

const chain = (...steps: ReadonlyArray<string>) =>
  `platform: "ensemble" ${tensors(fp32)} ensemble_scheduling { ${steps.join(" ")} }`

/** With a response cache, but with a decoupled model. The members are valid. */
const cached = (name: string, ...steps: ReadonlyArray<string>): BrokenModel => ({
  ...ensemble(
    `${chain(...steps)} response_cache { enable: true }`,
    `Response Cache does not currently support model ${name} with 'decoupled' transaction policy. Please disable the response cache.`,
    "A11.cache.decoupled",
  ),
  isWhole: true,
  status: "Invalid argument",
})

const simple = step("bare", { X: "X" }, { Y: "Y" })

export const wrongEnsembles: Readonly<Record<string, BrokenModel>> = {
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
    isUnreadable: true,
    proves: ["A11.ensemble.platform"],
  },
  no_scheduling: misconfigured(
    `platform: "ensemble" ${tensors(fp32)}`,
    "ensemble scheduling must be set for ensemble no_scheduling whose platform is ensemble",
    "A11.ensemble.platform",
  ),
  no_step: misconfigured(chain(), "must specify 'step' for ensemble 'no_step'", "A11.ensemble.no-step"),
  step_of_nothing: misconfigured(
    chain(step("", { X: "X" }, { Y: "Y" })),
    "must specify 'model_name' in step 0 of ensemble 'step_of_nothing'",
    "A11.ensemble.no-model",
  ),
  no_input_map: misconfigured(
    chain(simple, step("bare", {}, { Y: "Z" })),
    "must specify 'input_map' in step 1 of ensemble 'no_input_map'",
    "A11.ensemble.no-map",
  ),
  no_output_map: misconfigured(
    chain(step("bare", { X: "X" }, {})),
    "must specify 'output_map' in step 0 of ensemble 'no_output_map'",
    "A11.ensemble.no-map",
  ),
  unused_input: misconfigured(
    `${chain(simple)} ${io("input", "Z", fp32)}`,
    "ensemble input 'Z' for ensemble unused_input' is not used",
    "A11.ensemble.unused-input",
  ),
  unused_output: misconfigured(
    `${chain(simple)} ${io("output", "Z", fp32)}`,
    "ensemble output 'Z' for ensemble unused_output' is not used",
    "A11.ensemble.unused-output",
  ),
  unused_tensor: misconfigured(
    chain(simple, step("bare", { X: "X" }, { Y: "t" })),
    "ensemble tensor 't' is unused in ensemble 'unused_tensor'",
    "A11.ensemble.unused-tensor",
  ),
  unwritten: misconfigured(
    `${chain(simple, step("bare", { X: "nowhere" }, { Y: "Z" }))} ${io("output", "Z", fp32)}`,
    "output 'Z' for ensemble 'unwritten' is not written: at least one of its depending tensors, 'nowhere', is not connected",
    "A11.ensemble.unwritten",
  ),
  written_twice: misconfigured(
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
  reshaped_input: ensemble(
    chain(simple).replace("dims: 1", "dims: 4 reshape { shape: [ 2, 2 ] }"),
    "in ensemble reshaped_input, ensemble tensor X: inconsistent shape: [-1,2,2] is inferred from model reshaped_input while [-1,1] is inferred from model bare",
    "A11.ensemble.shape",
  ),
  reshaped_output: ensemble(
    `platform: "ensemble" ${tensors(fp32, "data_type: TYPE_FP32 dims: 1 reshape { shape: [ 1, 1 ] }")}
      ensemble_scheduling { ${simple} }`,
    "in ensemble reshaped_output, ensemble tensor Y: inconsistent shape: [-1,1,1] is inferred from model reshaped_output while [-1,1] is inferred from model bare",
    "A11.ensemble.shape",
  ),
  fewer_rows_and_other_shape: ensemble(
    chain(step("labelled", { X: "X" }, { Y: "Y" })).replaceAll("dims: 1", "dims: 7"),
    "ensemble fewer_rows_and_other_shape allows maximum batch size 4, but it contains model labelled which only allows maximum batch size to be 2",
    "A11.ensemble.batch",
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
    "ensemble 'other_version' depends on 'bare' whose required version 7 is not loaded.",
    "A11.ensemble.version.absent",
  ),
  cached_stream: cached("cached_stream", step("counting", { X: "X" }, { Y: "Y" })),
  cached_later_stream: cached(
    "cached_later_stream",
    step("bare", { X: "X" }, { Y: "t" }),
    step("counting", { X: "t" }, { Y: "Y" }),
  ),
  cached_inner_stream: cached("cached_inner_stream", step("streaming_last", { X: "X" }, { Y: "Y" })),
  with_group: misconfigured(
    `${chain(simple)} instance_group { count: 1 }`,
    "instance group should not be specified for ensemble 'with_group'",
    "A11.ensemble.fields",
  ),
  with_optimization: misconfigured(
    `${chain(simple)} optimization {}`,
    "optimization should not be specified for ensemble 'with_optimization'",
    "A11.ensemble.fields",
  ),
  with_warm_up: misconfigured(
    `${chain(simple)} model_warmup { name: "w" }`,
    "model_warmup can not be specified for ensemble 'with_warm_up'",
    "A11.ensemble.fields",
  ),
}
