/**
 * Unsupported parts of a configuration. A part that would change responses makes the model unavailable, with the
 * reason. Any other part is logged once as a warning.
 */
import * as ConfiguredMetrics from "@nereid/core/internal/metrics/ConfiguredMetrics"
import type {
  ModelConfig,
  ModelOptimizationPolicy_ExecutionAccelerators_Accelerator as Accelerator,
} from "@nereid/protocol/model_config"
import * as PythonBackend from "./PythonBackend.ts"

/** Returns an error if this backend is not supported, otherwise undefined. `files`: names of the version's files. */
export const backendProblem = (
  { backend, runtime, defaultModelFilename }: ModelConfig,
  files: ReadonlySet<string>,
): string | undefined => {
  if (backend === "python") {
    const script = files.has(defaultModelFilename)
      ? undefined
      : ["model.ts", "model.js"].find((file) => files.has(file))
    return script === undefined
      ? undefined
      : `to run ${script}, write backend: "nereid" instead of backend: "python" in config.pbtxt`
  }
  return backend === "" ||
    backend === "onnxruntime" ||
    backend === "nereid" ||
    PythonBackend.isShared({ backend, runtime })
    ? undefined
    : `unable to find backend library for backend '${backend}', try specifying runtime on the model configuration.`
}

export const problem = (config: ModelConfig): string | undefined => {
  const isMade = config.batchInput.length > 0 || config.batchOutput.length > 0
  return (config.backend === "nereid" || PythonBackend.runsPython(config)) && isMade
    ? "batch_input and batch_output are not supported for a script or a model in Python, which receives the requests of a batch"
    : undefined
}

/** `isLimited`: executions are limited by the resources of instance groups. */
export const warnings = (config: ModelConfig, isLimited: boolean): ReadonlyArray<string> => {
  const { instanceGroup, optimization } = config
  const ignored: ReadonlyArray<readonly [boolean, string]> = [
    [Object.keys(config.ccModelFilenames).length > 0, "cc_model_filenames"],
    ...Object.keys(config.metricTags).map((tag) => [!ConfiguredMetrics.isLabel(tag), `metric_tags '${tag}'`] as const),
    ...(config.modelMetrics?.metricControl ?? []).map(
      (control) =>
        [
          !ConfiguredMetrics.isOfFirstResponse(control),
          `model_metrics of '${control.metricIdentifier?.family ?? ""}'`,
        ] as const,
    ),
    [
      config.modelTransactionPolicy?.decoupled === true && config.backend === "onnxruntime",
      "model_transaction_policy.decoupled of an ONNX model",
    ],
    [!isLimited && instanceGroup.some(({ rateLimiter }) => rateLimiter !== undefined), "instance_group.rate_limiter"],
    [instanceGroup.some(({ secondaryDevices }) => secondaryDevices.length > 0), "instance_group.secondary_devices"],
    [instanceGroup.some(({ hostPolicy }) => hostPolicy !== ""), "instance_group.host_policy"],
    [(optimization?.priority ?? 0) !== 0, "optimization.priority"],
    [optimization?.cuda !== undefined, "optimization.cuda"],
    [
      hasParameters(optimization?.executionAccelerators?.gpuExecutionAccelerator),
      "optimization.execution_accelerators.gpu_execution_accelerator.parameters",
    ],
    [(optimization?.gatherKernelBufferThreshold ?? 0) !== 0, "optimization.gather_kernel_buffer_threshold"],
    [optimization?.eagerBatching === true, "optimization.eager_batching"],
    [(config.modelRepositoryAgents?.agents.length ?? 0) > 0, "model_repository_agents"],
    [(config.modelOperations?.opLibraryFilename.length ?? 0) > 0, "model_operations"],
    [config.runtime !== "" && !PythonBackend.isShared(config), "runtime"],
    ...states(config),
    ...parameters(config).map((name) => [name in config.parameters, `parameters '${name}'`] as const),
    [hasNamespaces(config), "ensemble_scheduling.step.model_namespace"],
  ]
  return ignored.flatMap(([isGiven, feature]) => (isGiven ? [feature] : []))
}

/** Nereid holds states in buffers of its own, which always grow as needed. */
const states = ({ schedulingChoice: { case: scheduling, value } }: ModelConfig) => {
  const given = scheduling === "sequenceBatching" ? value.state : []
  return [
    [
      given.some(({ useSameBufferForInputOutput }) => useSameBufferForInputOutput),
      "sequence_batching.state.use_same_buffer_for_input_output",
    ],
    [given.some(({ useGrowableMemory }) => useGrowableMemory), "sequence_batching.state.use_growable_memory"],
  ] as const
}

const hasParameters = (accelerators: ReadonlyArray<Accelerator> = []): boolean =>
  accelerators.some(({ parameters }) => Object.keys(parameters).length > 0)

/** Returns the names of unsupported parameters. All other parameters of a script are its own. */
const parameters = ({ backend }: ModelConfig): ReadonlyArray<string> =>
  backend === "onnxruntime"
    ? ["memory.enable_memory_arena_shrinkage", "TRITON_BATCH_STRATEGY_PATH"]
    : ["TRITON_BATCH_STRATEGY_PATH"]

const hasNamespaces = ({ schedulingChoice: { case: kind, value } }: ModelConfig): boolean =>
  kind === "ensembleScheduling" && value.step.some(({ modelNamespace }) => modelNamespace !== "")
