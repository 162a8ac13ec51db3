/**
 * Checks the configuration of an ensemble by itself: fields that do not apply to ensembles, and steps whose tensors do
 * not come from the inputs or do not lead to the outputs. The messages are Triton's. EnsembleCheck.ts checks it against
 * the models of its steps.
 */
import type { EnsembleStep } from "@nereid/core/internal/ensemble/EnsembleGraph"
import type { ModelConfig, ModelEnsembling } from "@nereid/protocol/model_config"

/** Undefined for a configuration that is of no ensemble. */
export const scheduling = ({ schedulingChoice }: ModelConfig): ModelEnsembling | undefined =>
  schedulingChoice.case === "ensembleScheduling" ? schedulingChoice.value : undefined

export const steps = (config: ModelConfig): ReadonlyArray<EnsembleStep> =>
  (scheduling(config)?.step ?? []).map(({ modelName, modelVersion, inputMap, outputMap }) => ({
    model: modelName,
    // -1, and what a configuration that says nothing has, is the latest.
    version: modelVersion > 0n ? String(modelVersion) : "",
    inputs: new Map(Object.entries(inputMap)),
    outputs: new Map(Object.entries(outputMap)),
  }))

/** Names of the models that it is made of. */
export const models = (config: ModelConfig): ReadonlyArray<string> => [
  ...new Set(steps(config).map(({ model }) => model)),
]

/** Checks a configuration as written; the defaults of other models would be errors in it. */
export const problem = (config: ModelConfig): string | undefined => {
  const { name, platform } = config
  if (scheduling(config) === undefined) return undefined
  if (platform !== "ensemble") {
    return `ensemble scheduling cannot be set for model '${name}' whose platform is not ensemble`
  }
  if (config.instanceGroup.length > 0) return `instance group should not be specified for ensemble '${name}'`
  if (config.optimization !== undefined) return `optimization should not be specified for ensemble '${name}'`
  if (config.modelWarmup.length > 0) return `model_warmup can not be specified for ensemble '${name}'`
  const all = steps(config)
  if (all.length === 0) return `must specify 'step' for ensemble '${name}'`
  for (const [index, step] of all.entries()) {
    const found = stepProblem(name, step, index)
    if (found !== undefined) return found
  }
  return flowProblem(config, all)
}

const stepProblem = (name: string, { model, inputs, outputs }: EnsembleStep, index: number): string | undefined => {
  const location = `in step ${index} of ensemble '${name}'`
  if (model === "") return `must specify 'model_name' ${location}`
  if (inputs.size === 0) return `must specify 'input_map' ${location}`
  return outputs.size === 0 ? `must specify 'output_map' ${location}` : undefined
}

interface TensorUse {
  /** Tensors of the steps that produce it; undefined if no step does. */
  from?: ReadonlySet<string>
  /** Whether a step uses it. */
  isUsed: boolean
}

/** Follows the tensors that are not ready from one to those that it depends on, to the last. May be a circle. */
const unconnected = (tensor: string, tensors: ReadonlyMap<string, TensorUse>, ready: ReadonlySet<string>): string => {
  const seen = new Set<string>()
  let last = tensor
  for (let next: string | undefined = tensor; next !== undefined;) {
    last = next
    next = [...(tensors.get(last)?.from ?? [])].find((other) => !ready.has(other) && !seen.has(other))
    if (next !== undefined) seen.add(next)
  }
  return last
}

const flowProblem = (config: ModelConfig, steps: ReadonlyArray<EnsembleStep>): string | undefined => {
  const { name, input, output } = config
  const tensors = new Map<string, TensorUse>()
  const use = (tensor: string): TensorUse => {
    const found = tensors.get(tensor) ?? { isUsed: false }
    tensors.set(tensor, found)
    return found
  }
  for (const [index, { inputs, outputs }] of steps.entries()) {
    const from = new Set(inputs.values())
    for (const tensor of outputs.values()) {
      const found = use(tensor)
      if (found.from !== undefined) {
        return `ensemble tensor '${tensor}' can appear in an output map only once for ensemble '${name}' step ${index}`
      }
      found.from = from
    }
    for (const tensor of from) use(tensor).isUsed = true
  }

  const ready = new Set<string>()
  for (const { name: tensor } of input) {
    if (!tensors.has(tensor)) return `ensemble input '${tensor}' for ensemble ${name}' is not used`
    ready.add(tensor)
  }
  for (let before = -1; before < ready.size;) {
    before = ready.size
    for (const [tensor, { from }] of tensors) {
      if (from !== undefined && [...from].every((other) => ready.has(other))) ready.add(tensor)
    }
  }
  for (const { name: tensor } of output) {
    const found = tensors.get(tensor)
    if (found === undefined) return `ensemble output '${tensor}' for ensemble ${name}' is not used`
    if (ready.has(tensor)) continue
    const missing = unconnected(tensor, tensors, ready)
    const detail = missing === tensor ? "" : `: at least one of its depending tensors, '${missing}', is not connected`
    return `output '${tensor}' for ensemble '${name}' is not written${detail}`
  }
  const outputs = new Set(output.map(({ name: tensor }) => tensor))
  const unused = [...tensors].find(([tensor, { isUsed }]) => !outputs.has(tensor) && !(isUsed && ready.has(tensor)))
  if (unused !== undefined) return `ensemble tensor '${unused[0]}' is unused in ensemble '${name}'`
  const written = input.find(({ name: tensor }) => tensors.get(tensor)?.from !== undefined)
  return written && `input '${written.name}' of ensemble '${name}' is also an output of one of its steps`
}
