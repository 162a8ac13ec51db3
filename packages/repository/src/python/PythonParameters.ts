/**
 * Settings of a model's processes from the `parameters` of its configuration: those of Triton's Python backend,
 * https://github.com/triton-inference-server/python_backend, and limits that Triton does not have. All other parameters
 * belong to the model.
 */
import { Result } from "effect"
import type { ProcessLimits } from "@nereid/python/internal/process/ProcessOptions"
import type { ModelConfig } from "@nereid/protocol/model_config"
import * as PythonBackend from "../config/PythonBackend.ts"

export interface PythonParameters {
  /** Folder or archive of the Python environment; undefined for the Python of the server. */
  readonly environment: string | undefined
  readonly limits: ProcessLimits
  /** Whether all instances are threads of one process. */
  readonly inThreads: boolean
  /** Batches that an `async def` executes at once in each instance. */
  readonly concurrency: number
  /** Names of further environment variables that the processes inherit. */
  readonly inheritEnv: ReadonlyArray<string>
}

/** Stands for the directory of the model at the beginning of a path. */
const modelDirectory = "$$TRITON_MODEL_DIRECTORY"

/** The settings, or what is wrong with the first bad value. `path` is the model's directory. */
export const make = (
  { parameters }: Pick<ModelConfig, "parameters">,
  path: string,
): Result.Result<PythonParameters, string> => {
  const problems: Array<string> = []
  const text = (name: string): string | undefined => parameters[name]?.stringValue.trim()
  const number = (name: string, [min, max]: readonly [number, number]): number | undefined => {
    const given = text(name)
    if (given === undefined) return undefined
    const value = /^[0-9]{1,15}$/.test(given) ? Number(given) : NaN
    if (value >= min && value <= max) return value
    problems.push(`parameter '${name}' must be an integer from ${min} to ${max}, but '${given}' was given`)
    return undefined
  }
  const seconds = (name: string): number | undefined => {
    const value = number(name, [1, maxSeconds])
    return value === undefined ? undefined : value * 1000
  }
  const cpuOnly = text("FORCE_CPU_ONLY_INPUT_TENSORS")
  if (cpuOnly !== undefined && cpuOnly !== "yes" && cpuOnly !== "no") {
    problems.push(`Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS: ${cpuOnly}'`)
  }
  const threads = text(PythonBackend.threadsParameter) ?? "no"
  if (threads !== "yes" && threads !== "no") {
    problems.push(`parameter '${PythonBackend.threadsParameter}' must be 'yes' or 'no', but '${threads}' was given`)
  }
  const environment = text("EXECUTION_ENV_PATH")
  const settings: PythonParameters = {
    environment: environment?.startsWith(modelDirectory)
      ? path + environment.slice(modelDirectory.length)
      : environment,
    limits: {
      initializeTimeout: seconds("initialize_timeout_seconds"),
      executeTimeout: seconds("execute_timeout_seconds"),
      stopTimeout: seconds("finalize_timeout_seconds") ?? 30_000,
      memory: number("max_process_memory_bytes", [minMemory, Number.MAX_SAFE_INTEGER]),
    },
    inThreads: threads === "yes",
    concurrency: number("concurrent_executions", [1, maxConcurrency]) ?? 1,
    inheritEnv: (text("inherited_variables") ?? "").split(/[\s,]+/).filter((name) => name !== ""),
  }
  const [problem] = problems
  return problem === undefined ? Result.succeed(settings) : Result.fail(problem)
}

/** A day. */
const maxSeconds = 86_400

/** Less would not suffice for numpy. */
const minMemory = 64 * 2 ** 20

const maxConcurrency = 1024
