/** Validates the instance groups of a configuration. The messages and their order are Triton's. */
import {
  type ModelConfig,
  type ModelInstanceGroup,
  ModelInstanceGroup_Kind as Kind,
  ModelInstanceGroup_KindSchema as KindSchema,
} from "@nereid/protocol/model_config"

/** `available`: the numbers of the GPUs that there are. */
export const problem = (config: ModelConfig, available: ReadonlyArray<number>): string | undefined => {
  const { name, platform, instanceGroup } = config
  // An ensemble executes nothing itself.
  if (platform === "ensemble") return undefined
  if (instanceGroup.length === 0) return `must specify one or more 'instance group's for ${name}`
  for (const group of instanceGroup) {
    const found = groupProblem(config, group, available)
    if (found !== undefined) return found
  }
  const active = instanceGroup.filter(({ passive }) => !passive)
  const count = active.reduce((sum, group) => sum + group.count * Math.max(1, group.gpus.length), 0)
  if (count > maxInstances)
    return `instance groups of model ${name} have ${count} instances in total, at most ${maxInstances} are allowed`
  return active.length === 0 ? "all its instance groups are passive" : undefined
}

/** Maximum instances of a model: above any useful number, and low enough to protect the server. */
const maxInstances = 1024

const groupProblem = (
  { name: model, platform }: ModelConfig,
  { name, kind, gpus, profile }: ModelInstanceGroup,
  available: ReadonlyArray<number>,
): string | undefined => {
  const subject = `instance group ${name} of model ${model}`
  const kindName = KindSchema.value[kind]?.name
  if (kindName === undefined) return `${subject} has unexpected kind ${kind}`
  if (kind === Kind.GPU && gpus.length === 0) return `${subject} has kind KIND_GPU but no GPUs are available`
  if (gpus.length > 0 && kind !== Kind.GPU) return `${subject} has kind ${kindName} but specifies one or more GPUs`
  const absent = gpus.find((gpu) => !available.includes(gpu))
  if (absent !== undefined) {
    return `${subject} specifies invalid or unsupported gpu id ${absent}. Available GPUs: ${available.join(", ")}`
  }
  return profile.length === 0
    ? undefined
    : `${subject} and platform ${platform}specifies profile field which is only supported for TensorRT models`
}
