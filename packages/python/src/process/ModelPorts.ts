/**
 * Services of the server that the code of a model uses: other models, their loads, metrics, the log. The owner of the
 * model provides them. ControlCalls.ts translates the frames of a process to them.
 */
import type { Effect, Result } from "effect"
import type { InferenceError } from "@nereid/core/Errors"
import type { LogFilter } from "@nereid/core/internal/running/LogFilter"
import type { Cancel, NamedTensor, Parameters } from "@nereid/core/internal/request/Request"

/** A request to another model. */
export interface ModelCall {
  readonly model: string
  /** Empty for the highest one. */
  readonly version: string
  readonly id: string
  readonly inputs: ReadonlyArray<NamedTensor>
  /** With the protocol's own, such as `sequence_id` and `timeout` (in microseconds). */
  readonly parameters: Parameters
  /** Empty for all. */
  readonly requestedOutputs: ReadonlyArray<string>
  /** Trace context of the caller as JSON text, as the model received it; undefined without one. */
  readonly trace: string | undefined
  /** Whether the caller takes any number of responses. */
  readonly decoupled: boolean
}

/** One response to a call. */
export interface CallResponse {
  readonly model: string
  readonly version: string
  readonly outputs: ReadonlyArray<NamedTensor>
  readonly parameters: Parameters
}

export interface CallResponses {
  /**
   * Takes one response; `isFinal` if no further one follows. The call itself takes it. Its effect completes once the
   * caller takes more.
   */
  readonly respond: (response: CallResponse, isFinal: boolean) => Effect.Effect<void>
  /** The same for an error that is one of several responses. */
  readonly fail: (error: InferenceError) => Effect.Effect<void>
  /** Ends the call: without an error after the last response, if that was not final. */
  readonly end: (error?: InferenceError) => void
}

/** A load, an unload or a question for the readiness of a model. */
export type ModelControl =
  | {
      readonly _tag: "Load"
      readonly model: string
      /** Empty for that of the repository. */
      readonly config: string
      readonly files: ReadonlyMap<string, Uint8Array>
    }
  | { readonly _tag: "Unload"; readonly model: string; readonly dependents: boolean }
  | { readonly _tag: "IsReady"; readonly model: string; readonly version: string }

/**
 * An operation on a metric. Families and metrics have numbers, which the process has chosen, for as long as it runs.
 */
export type MetricOperation = Readonly<Record<string, unknown>> & { readonly do: string }

export type LogLevel = "INFO" | "WARN" | "ERROR" | "VERBOSE"

export interface LogRecord {
  readonly level: LogLevel
  readonly message: string
  /** Name of the Python file, and the line of the call. */
  readonly file: string
  readonly line: number
}

export interface ModelPorts {
  /** Begins a call. The result cancels it. */
  readonly call: (call: ModelCall, responses: CallResponses) => Cancel
  /** True and false answer IsReady; the result of the others is ignored. */
  readonly control: (control: ModelControl) => Effect.Effect<boolean, InferenceError>
  /** Metrics of one process; `release` is called at its end. */
  readonly metrics: () => {
    readonly apply: (operation: MetricOperation) => Result.Result<number | undefined, string>
    readonly release: () => void
  }
  readonly log: (record: LogRecord) => void
  /** Levels that `log` takes; undefined for all. */
  readonly logFilter?: LogFilter | undefined
  /** Takes a line that the process has printed. */
  readonly printed: (line: string, stream: "stdout" | "stderr") => void
}
