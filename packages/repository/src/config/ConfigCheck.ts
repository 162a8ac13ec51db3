/**
 * Checks a complete configuration by itself, with Triton's messages. The fields are described in
 * https://github.com/triton-inference-server/server/blob/main/docs/user_guide/model_configuration.md
 * FileCheck.ts checks it against its model file.
 */
import * as ConfiguredMetrics from "@nereid/core/internal/metrics/ConfiguredMetrics"
import type { ModelConfig, ModelDynamicBatching, ModelQueuePolicy } from "@nereid/protocol/model_config"
import { ModelQueuePolicy_TimeoutAction as TimeoutAction } from "@nereid/protocol/model_config"
import * as BatchGroupOrder from "./BatchGroupOrder.ts"
import * as EnsembleConfig from "./EnsembleConfig.ts"
import * as InstanceGroupCheck from "./InstanceGroupCheck.ts"
import * as TensorCheck from "./TensorCheck.ts"

/** Returns the first problem, or undefined. `gpus`: the numbers of the machine's GPUs. */
export const problem = (config: ModelConfig, gpus: ReadonlyArray<number>): string | undefined =>
  schedulingProblem(config) ??
  transactionProblem(config) ??
  metricsProblem(config) ??
  BatchGroupOrder.problem(config) ??
  TensorCheck.problem(config) ??
  (config.platform === "ensemble" ? undefined : InstanceGroupCheck.problem(config, gpus))

/** Checks the name and the backend, which are known before the model file is read. */
export const identityProblem = (config: ModelConfig, directory: string): string | undefined => {
  const { name, platform, backend } = config
  if (name !== "" && name !== directory) {
    return `unexpected directory name '${directory}' for model '${name}', directory name must equal model name`
  }
  if (config.maxBatchSize < 0) return `'max_batch_size' must be non-negative value for ${directory}`
  if (platform !== "" && !Object.hasOwn(backends, platform))
    return `unexpected platform type '${platform}' for ${directory}`
  const implied = backends[platform]
  if (implied !== undefined && backend !== "" && implied !== backend) {
    return `unexpected 'platform' and 'backend' pair, got:${platform}, ${backend}`
  }
  return undefined
}

/** Whether no backend is known, even from the files. An ensemble needs none. */
export const isUnspecified = ({ platform, backend, schedulingChoice }: ModelConfig): boolean =>
  backend === "" && platform !== "ensemble" && schedulingChoice.case !== "ensembleScheduling"

/** Backends of the platforms in configurations. */
export const backends: Readonly<Record<string, string>> = {
  onnxruntime_onnx: "onnxruntime",
  tensorrt_plan: "tensorrt",
  tensorflow_graphdef: "tensorflow",
  tensorflow_savedmodel: "tensorflow",
  pytorch_libtorch: "pytorch",
  ensemble: "",
}

const schedulingProblem = (config: ModelConfig): string | undefined => {
  const { name, schedulingChoice: scheduling } = config
  if (config.platform === "ensemble" && scheduling.case !== "ensembleScheduling") {
    return `ensemble scheduling must be set for ensemble ${name} whose platform is ensemble`
  }
  if (scheduling.case === "ensembleScheduling") return EnsembleConfig.problem(config)
  return scheduling.case === "dynamicBatching" ? batchingProblem(config, scheduling.value) : undefined
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

const metricsProblem = (config: ModelConfig): string | undefined => {
  const buckets = ConfiguredMetrics.buckets(config) ?? []
  if (buckets.every((end, index) => Number.isFinite(end) && end > (buckets[index - 1] ?? -Infinity))) return undefined
  return `buckets of '${ConfiguredMetrics.firstResponse}' must be ascending numbers for ${config.name}, got [${buckets.join(", ")}]`
}

const transactionProblem = (config: ModelConfig): string | undefined => {
  if (config.responseCache?.enable !== true) return undefined
  const refusal = (feature: string) =>
    `Response Cache does not currently support model ${config.name} with ${feature}. Please disable the response cache.`
  if (config.schedulingChoice.case === "sequenceBatching") return refusal("sequence batching scheduler")
  return config.modelTransactionPolicy?.decoupled === true ? refusal("'Decoupled' transaction policy") : undefined
}
