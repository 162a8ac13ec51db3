/**
 * Session options of ONNX Runtime from a configuration: `optimization`, and the parameters of Triton's backend,
 * https://github.com/triton-inference-server/onnxruntime_backend
 */
import { Duration, Result } from "effect"
import { availableParallelism } from "node:os"
import type { BuiltInstance } from "@nereid/core/InstanceContext"
import type { OnnxOptions } from "@nereid/onnx/internal/Instances"
import type { Providers } from "@nereid/onnx/internal/SessionPlan"
import type { ModelConfig } from "@nereid/protocol/model_config"

/**
 * Returns the options of all sessions; InstanceGroups.ts returns the instances. `idleSeconds`: default of the idle
 * timeout, 0 for none.
 */
export const options = (
  { optimization, parameters }: ModelConfig,
  file: string,
  idleSeconds: number,
): Result.Result<Omit<OnnxOptions, "instances" | "providers">, string> => {
  const problems: Array<string> = []
  /** Parses a number within bounds; returns the fallback if the parameter is absent or equal to it. */
  const number = (name: string, fallback: number, [min, max]: readonly [number, number]): number => {
    const text = parameters[name]?.stringValue.trim()
    if (text === undefined || text === "") return fallback
    const value = /^-?[0-9]{1,9}$/.test(text) ? Number(text) : NaN
    if (value >= min && value <= max) return value
    problems.push(`parameter '${name}' must be an integer from ${min} to ${max}, but '${text}' was given`)
    return fallback
  }
  const accelerators = optimization?.executionAccelerators
  for (const { name } of accelerators?.cpuExecutionAccelerator ?? []) {
    problems.push(
      name === "openvino"
        ? "OpenVINO Execution Accelerator is not enabled: onnxruntime-node has none"
        : `unknown Execution Accelerator '${name}' is requested`,
    )
  }
  for (const { name } of accelerators?.gpuExecutionAccelerator ?? []) {
    if (name !== "tensorrt" && name !== "cuda") problems.push(`unknown Execution Accelerator '${name}' is requested`)
  }
  const isParallel = number("execution_mode", 0, [0, 1]) === 1
  const interOpThreads = number("inter_op_thread_count", 0, [0, 1024]) || availableParallelism()
  const idleTimeout = number("idle_timeout_seconds", idleSeconds, [0, maxIdleSeconds])
  const session = {
    file,
    // The default of the runtime, all cores for each instance, has instances wait for each other.
    intraOpThreads: number("intra_op_thread_count", 0, [0, 1024]) || 1,
    interOpThreads: isParallel ? Math.max(2, interOpThreads) : 1,
    graphOptimization: graphLevels.get(optimization?.graph?.level ?? 0) ?? ("all" as const),
    memoryArena: number("enable_mem_arena", 1, [0, 1]) === 1,
    idleTimeout: idleTimeout === 0 ? undefined : Duration.seconds(idleTimeout),
  }
  const [problem] = problems
  return problem === undefined ? Result.succeed(session) : Result.fail(problem)
}

/** Returns the providers of an instance in order: accelerators, then CUDA, then the CPU. */
export const providers = ({ optimization }: ModelConfig, { gpu }: BuiltInstance): Providers => {
  if (gpu === undefined) return ["cpu"]
  const accelerators = optimization?.executionAccelerators?.gpuExecutionAccelerator ?? []
  const isAccelerated = accelerators.some(({ name }) => name === "tensorrt")
  const cuda = { name: "cuda", deviceId: gpu } as const
  return isAccelerated ? [{ name: "tensorrt", deviceId: gpu }, cuda] : [cuda]
}

/** The longest idle timeout: a day. */
export const maxIdleSeconds = 86_400

const graphLevels: ReadonlyMap<number, NonNullable<OnnxOptions["graphOptimization"]>> = new Map([
  [-1, "basic"],
  [1, "extended"],
  [2, "disabled"],
])
