/**
 * Fills in the protocol's defaults of a configuration, as the config endpoint shows them. ConfigCompletion.ts adds
 * values from the model file.
 */
import { create } from "@bufbuild/protobuf"
import {
  type ModelConfig,
  ModelDynamicBatchingSchema,
  type ModelInstanceGroup,
  ModelInstanceGroup_Kind as Kind,
  ModelInstanceGroupSchema,
  type ModelOptimizationPolicy,
  type ModelSequenceBatching,
  ModelOptimizationPolicy_PinnedMemoryBufferSchema as PinnedMemorySchema,
  ModelOptimizationPolicySchema,
  ModelVersionPolicySchema,
} from "@nereid/protocol/model_config"
import { backends } from "./ConfigCheck.ts"

interface ModelKind {
  readonly backend: string
  readonly platform: string
}

/**
 * The files that tell what runs a model whose configuration does not, and their defaults in `default_model_filename`.
 */
const modelFiles: Readonly<Record<string, ModelKind>> = {
  "model.onnx": { backend: "onnxruntime", platform: "onnxruntime_onnx" },
  "model.ts": { backend: "nereid", platform: "" },
  "model.js": { backend: "nereid", platform: "" },
  "model.py": { backend: "python", platform: "" },
}

/** Platforms of other backends, which Triton fills in. */
const platforms: ReadonlyMap<string, string> = new Map([
  ["tensorrt", "tensorrt_plan"],
  ["pytorch", "pytorch_libtorch"],
])

/** Name by the directory; backend by the configuration, the files of the versions, or the name: `model.<backend>`. */
export const identified = (config: ModelConfig, directory: string, files: ReadonlySet<string>): ModelConfig => {
  const { platform, backend, defaultModelFilename } = config
  const isSpecified = backend !== "" || platform !== ""
  const possible = Object.entries(modelFiles).filter(([, other]) =>
    backend === "" ? platform === "" || platform === other.platform : backend === other.backend,
  )
  const guess =
    possible.find(([file]) => (isSpecified || defaultModelFilename === "") && files.has(file)) ??
    possible.find(([file]) => isSpecified || file === defaultModelFilename) ??
    (isSpecified || defaultModelFilename !== "" ? undefined : byName(directory))
  const [file, found] = guess ?? ["", { backend: backends.get(platform) ?? "", platform: platforms.get(backend) ?? "" }]
  return {
    ...config,
    name: directory,
    backend: backend === "" ? found.backend : backend,
    platform: platform === "" ? found.platform : platform,
    defaultModelFilename: defaultModelFilename === "" ? file : defaultModelFilename,
  }
}

/** Triton's last resort: the backend after the first dot of the model's name. */
const byName = (name: string): [file: string, ModelKind] | undefined => {
  const dot = name.indexOf(".")
  const backend = name.slice(dot + 1)
  return dot < 0 || backend === "" ? undefined : [`model.${backend}`, { backend, platform: "" }]
}

/** Default instance counts of a group on the CPU. */
const defaultCounts: ReadonlyMap<string, number> = new Map([["onnxruntime", 2]])

/** Fills in the defaults. `gpus`: the numbers of the machine's GPUs. */
export const filled = (config: ModelConfig, gpus: ReadonlyArray<number>): ModelConfig => {
  const versionPolicy = config.versionPolicy?.policyChoice.case === undefined ? latest : config.versionPolicy
  // An ensemble executes nothing itself.
  if (config.schedulingChoice.case === "ensembleScheduling") return { ...config, versionPolicy }
  return {
    ...config,
    versionPolicy,
    instanceGroup: groups(config, gpus),
    optimization: optimization(config.optimization),
    schedulingChoice: scheduling(config),
  }
}

const latest = create(ModelVersionPolicySchema, { policyChoice: { case: "latest", value: { numVersions: 1 } } })

const groups = (
  { name, backend, instanceGroup }: ModelConfig,
  gpus: ReadonlyArray<number>,
): Array<ModelInstanceGroup> => {
  const count = defaultCounts.get(backend) ?? 1
  if (instanceGroup.length === 0) return [create(ModelInstanceGroupSchema, { name, kind: Kind.CPU, count })]
  return instanceGroup.map((group, index) => {
    // ONNX Runtime for GPUs is not a default; the configuration must name it.
    const isOnGpu =
      group.kind === Kind.GPU ||
      (group.kind === Kind.AUTO && group.gpus.length > 0 && group.gpus.every((gpu) => gpus.includes(gpu)))
    const kind = isOnGpu ? Kind.GPU : group.kind === Kind.AUTO ? Kind.CPU : group.kind
    return {
      ...group,
      name: group.name === "" ? `${name}_${index}` : group.name,
      kind,
      count: group.count < 1 ? (isOnGpu ? 1 : count) : group.count,
      gpus: isOnGpu && group.gpus.length === 0 ? [...gpus] : group.gpus,
    }
  })
}

const optimization = (given: ModelOptimizationPolicy | undefined): ModelOptimizationPolicy => {
  const policy = given ?? create(ModelOptimizationPolicySchema)
  return {
    ...policy,
    inputPinnedMemory: policy.inputPinnedMemory ?? pinned,
    outputPinnedMemory: policy.outputPinnedMemory ?? pinned,
  }
}

const pinned = create(PinnedMemorySchema, { enable: true })

const scheduling = ({ schedulingChoice, maxBatchSize }: ModelConfig): ModelConfig["schedulingChoice"] => {
  if (schedulingChoice.case === "dynamicBatching" && schedulingChoice.value.preferredBatchSize.length === 0) {
    const preferredBatchSize = maxBatchSize > 0 ? [maxBatchSize] : []
    return { case: "dynamicBatching", value: { ...schedulingChoice.value, preferredBatchSize } }
  }
  return schedulingChoice.case === "sequenceBatching"
    ? { case: "sequenceBatching", value: sequences(schedulingChoice.value, maxBatchSize) }
    : schedulingChoice
}

const sequences = (given: ModelSequenceBatching, maxBatchSize: number): ModelSequenceBatching => {
  const { maxSequenceIdleMicroseconds: idle, strategyChoice } = given
  const isOpen = strategyChoice.case === "oldest" && strategyChoice.value.preferredBatchSize.length === 0
  return {
    ...given,
    maxSequenceIdleMicroseconds: idle === 0n ? 1_000_000n : idle,
    strategyChoice:
      isOpen && maxBatchSize > 0
        ? { case: "oldest", value: { ...strategyChoice.value, preferredBatchSize: [maxBatchSize] } }
        : strategyChoice,
  }
}

/** Scheduling that the completion from a model file turns on. */
export const dynamicBatching: ModelConfig["schedulingChoice"] = {
  case: "dynamicBatching",
  value: create(ModelDynamicBatchingSchema),
}
