/**
 * Checks a configuration by itself, before the versions of the model are chosen, with Triton's messages and in Triton's
 * order. The fields are described in
 * https://github.com/triton-inference-server/server/blob/main/docs/user_guide/model_configuration.md
 * InstanceGroupCheck.ts and TensorCheck.ts check the parts that belong to a version, and FileCheck.ts checks a
 * configuration against its model file.
 */
import type { ModelConfig, ModelDynamicBatching, ModelQueuePolicy } from "@nereid/protocol/model_config"
import { ModelQueuePolicy_TimeoutAction as TimeoutAction } from "@nereid/protocol/model_config"
import * as BatchGroupOrder from "./BatchGroupOrder.ts"
import * as EnsembleConfig from "./EnsembleConfig.ts"
import * as LatencyTarget from "./LatencyTarget.ts"
import * as MetricsCheck from "./MetricsCheck.ts"
import * as SequenceCheck from "./SequenceCheck.ts"

/** Returns the first problem of a configuration with the name and backend of its model, or undefined. */
export const problem = (config: ModelConfig): string | undefined =>
  platformProblem(config) ??
  (config.maxBatchSize < 0 ? `'max_batch_size' must be non-negative value for ${config.name}` : undefined) ??
  schedulingProblem(config) ??
  cacheProblem(config) ??
  MetricsCheck.problem(config) ??
  BatchGroupOrder.problem(config) ??
  LatencyTarget.problem(config)

/** Checks the name that a configuration gives its model. */
export const nameProblem = ({ name }: ModelConfig, directory: string): string | undefined =>
  name === "" || name === directory
    ? undefined
    : `unexpected directory name '${directory}' for model '${name}', directory name must equal model name`

/** Returns an error if neither the configuration, the files nor the name of the model tell its backend. */
export const backendProblem = ({ backend, platform, defaultModelFilename }: ModelConfig, name: string) =>
  backend === "" && platform === "" && defaultModelFilename === ""
    ? `Invalid model name: Could not determine backend for model '${name}' with no backend in model configuration. ` +
      "Expected model name of the form 'model.<backend_name>'."
    : undefined

/** Backends of the platforms in configurations. */
export const backends: ReadonlyMap<string, string> = new Map([
  ["onnxruntime_onnx", "onnxruntime"],
  ["tensorrt_plan", "tensorrt"],
  ["tensorflow_graphdef", "tensorflow"],
  ["tensorflow_savedmodel", "tensorflow"],
  ["pytorch_libtorch", "pytorch"],
])

const knownBackends: ReadonlySet<string> = new Set(backends.values())

/** Any platform may be written beside a backend that has none itself. */
const platformProblem = ({ name, platform, backend }: ModelConfig): string | undefined => {
  const isEnsemble = platform === "ensemble"
  if (backend === "") return isEnsemble ? undefined : `unexpected platform type '${platform}' for ${name}`
  if (isEnsemble) return `Ensemble model '${name}' must have platform type 'ensemble' and empty backend type`
  return knownBackends.has(backend) && backends.get(platform) !== backend
    ? `unexpected 'platform' and 'backend' pair, got:${platform}, ${backend}`
    : undefined
}

const schedulingProblem = (config: ModelConfig): string | undefined => {
  const { name, platform, schedulingChoice: scheduling } = config
  if (scheduling.case === "ensembleScheduling") return EnsembleConfig.problem(config)
  const found =
    scheduling.case === "dynamicBatching"
      ? batchingProblem(config, scheduling.value)
      : scheduling.case === "sequenceBatching"
        ? (sequenceCacheProblem(config) ?? SequenceCheck.problem(config, scheduling.value))
        : undefined
  if (found !== undefined || platform !== "ensemble") return found
  return `ensemble scheduling must be set for ensemble ${name} whose platform is ensemble`
}

const batchingProblem = ({ name, maxBatchSize }: ModelConfig, batching: ModelDynamicBatching): string | undefined => {
  for (const size of batching.preferredBatchSize) {
    if (size <= 0) return `dynamic batching preferred size must be positive for ${name}`
    if (size > maxBatchSize) return `dynamic batching preferred size must be <= max batch size for ${name}`
  }
  const { priorityLevels: levels, defaultPriorityLevel } = batching
  const isLevel = (level: bigint) => level >= 1n && level <= levels
  if (levels > 0n) {
    if (!isLevel(defaultPriorityLevel)) return `default priority level must be in range [1, ${levels}] for ${name}`
    if (!Object.keys(batching.priorityQueuePolicy).every((level) => isLevel(BigInt(level)))) {
      return `priority queue policy must have priority level in range [1, ${levels}] for ${name}`
    }
  }
  if (!batching.preserveOrdering) return undefined
  if (levels > 1n) return `Only one priority level is allowed when 'preserve_ordering' is true for ${name}`
  const { defaultQueuePolicy, priorityQueuePolicy } = batching
  return [defaultQueuePolicy, ...Object.values(priorityQueuePolicy)].some(isDelayed)
    ? `Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for ${name}`
    : undefined
}

const isDelayed = (policy: ModelQueuePolicy | undefined): boolean =>
  policy !== undefined && policy.defaultTimeoutMicroseconds > 0n && policy.timeoutAction === TimeoutAction.DELAY

const cacheRefusal = (name: string, feature: string): string =>
  `Response Cache does not currently support model ${name} with ${feature}. Please disable the response cache.`

const sequenceCacheProblem = ({ name, responseCache }: ModelConfig): string | undefined =>
  responseCache?.enable === true ? cacheRefusal(name, "sequence batching scheduler") : undefined

const cacheProblem = ({ name, responseCache, modelTransactionPolicy }: ModelConfig): string | undefined =>
  responseCache?.enable === true && modelTransactionPolicy?.decoupled === true
    ? cacheRefusal(name, "'decoupled' transaction policy")
    : undefined
