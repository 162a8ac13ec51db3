/**
 * What of a configuration is not done here: what would change answers makes a model unavailable, with the reason; what would
 * not is told once, as a warning.
 */
import type { ModelConfig, ModelQueuePolicy } from "@nereid/protocol/model_config"

/** Why nothing here runs such a model; undefined where something does. */
export const backendProblem = ({ name, platform, backend }: ModelConfig): string | undefined => {
  if (platform === "ensemble") return "ensembles are not supported yet"
  if (backend === "") return `must specify 'platform' or 'backend' for '${name}'`
  if (backend === "python") return "model.py needs Triton's Python backend, which is no part of this server"
  return backend === "onnxruntime"
    ? undefined
    : `unable to find backend library for backend '${backend}', try specifying runtime on the model configuration.`
}

export const problem = (config: ModelConfig): string | undefined => {
  if (config.schedulingChoice.case === "sequenceBatching") return "sequence batching is not supported"
  if (config.batchInput.length > 0 || config.batchOutput.length > 0) {
    return "batch_input and batch_output are not supported yet"
  }
  const ragged = config.input.find(({ allowRaggedBatch }) => allowRaggedBatch)
  return ragged && `input '${ragged.name}' allows ragged batches, which are not supported yet`
}

export const warnings = (config: ModelConfig): ReadonlyArray<string> => {
  const batching = config.schedulingChoice.case === "dynamicBatching" ? config.schedulingChoice.value : undefined
  const policies = [batching?.defaultQueuePolicy, ...Object.values(batching?.priorityQueuePolicy ?? {})]
  const { gpuExecutionAccelerator = [], cpuExecutionAccelerator = [] } =
    config.optimization?.executionAccelerators ?? {}
  const ignored: ReadonlyArray<readonly [boolean, string]> = [
    [batching?.preserveOrdering === true, "dynamic_batching.preserve_ordering"],
    [(batching?.priorityLevels ?? 0n) > 0n, "dynamic_batching.priority_levels"],
    [policies.some(hasTimeout), "the timeouts of queue policies"],
    [gpuExecutionAccelerator.length + cpuExecutionAccelerator.length > 0, "optimization.execution_accelerators"],
    [Object.keys(config.ccModelFilenames).length > 0, "cc_model_filenames"],
    [Object.keys(config.metricTags).length > 0, "metric_tags"],
    [config.modelMetrics !== undefined, "model_metrics"],
    [config.modelTransactionPolicy?.decoupled === true, "model_transaction_policy.decoupled of an ONNX model"],
    [config.instanceGroup.some(({ rateLimiter }) => rateLimiter !== undefined), "instance_group.rate_limiter"],
    [(config.modelRepositoryAgents?.agents.length ?? 0) > 0, "model_repository_agents"],
    [(config.modelOperations?.opLibraryFilename.length ?? 0) > 0, "model_operations"],
  ]
  return ignored.flatMap(([isGiven, what]) => (isGiven ? [what] : []))
}

const hasTimeout = (policy: ModelQueuePolicy | undefined): boolean =>
  policy !== undefined && policy.defaultTimeoutMicroseconds > 0n
