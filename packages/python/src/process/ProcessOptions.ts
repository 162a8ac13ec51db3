/** All that a model process is started with. */
import type { Signature } from "@nereid/core/internal/tensor/TensorSpec"
import type { ModelPorts } from "./ModelPorts.ts"
import type { CodeSource } from "./CodeSource.ts"

/** Arguments of `initialize`: all of them are texts. */
export interface InitializeArguments {
  readonly model_config: string
  readonly model_instance_kind: string
  readonly model_instance_name: string
  readonly model_instance_device_id: string
  readonly model_repository: string
  readonly model_version: string
  readonly model_name: string
}

/** Limits on the time of a model process, in milliseconds. */
export interface ProcessLimits {
  /** For the import and `initialize`; undefined for no limit. */
  readonly initializeTimeout: number | undefined
  /** For one `execute`; undefined for no limit. */
  readonly executeTimeout: number | undefined
  /** For the end of the current `execute` and `finalize`. */
  readonly stopTimeout: number
  /** Maximum memory of the process in bytes; undefined for no limit. */
  readonly memory: number | undefined
}

/** One instance of a process. */
export interface ProcessInstance {
  readonly name: string
  readonly args: InitializeArguments
}

/** `name` and `args` are those of the first instance. */
export interface ProcessOptions extends ProcessInstance {
  /** Further instances, each in another thread of the process. */
  readonly threads: ReadonlyArray<ProcessInstance>
  readonly model: string
  readonly source: CodeSource
  /** Path of the Python executable. */
  readonly python: string
  /** All environment variables of the process. */
  readonly environment: Readonly<Record<string, string>>
  /** Tensors as the code of the model sees them. */
  readonly signature: Signature
  readonly maxBatchSize: number
  readonly decoupled: boolean
  /** Whether outputs must be exactly the declared ones, or as Triton has it for Python models. */
  readonly outputs: "declared" | "configured"
  /** Executions of `async def` at once that each have one response. */
  readonly concurrency: number
  /** Calls of other models at once. */
  readonly callThreads: number
  readonly limits: ProcessLimits
  readonly ports: ModelPorts
}
