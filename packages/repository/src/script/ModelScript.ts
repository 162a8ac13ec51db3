/**
 * API of scripted models: the default export of `model.ts` or `model.js` in a repository. config.pbtxt declares the
 * inputs and outputs. Use Model.Service instead for models whose types are known at compile time.
 */
import type { HandledRequest, Tensor } from "@nereid/core"
import * as ScriptHandler from "@nereid/core/internal/handler/ScriptHandler"
import type { ScriptSequence } from "@nereid/core/internal/handler/ScriptHandler"
import type { EndReason } from "@nereid/core/internal/sequence/SequenceEndings"
import type { NamedCalls } from "@nereid/core/internal/call/NamedCalls"
import type { TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import type { ModelConfig } from "@nereid/protocol/model_config"
import * as ScriptKind from "./ScriptKind.ts"
import type { ScriptLogger } from "./ScriptLogger.ts"
import type { ScriptMetrics } from "./ScriptMetrics.ts"

/** Arguments of `initialize`. */
export interface Arguments {
  readonly modelName: string
  readonly modelVersion: string
  /** Path of the model's directory. */
  readonly modelRepository: string
  /** Complete configuration with defaults. Settings of the script are in its `parameters`. */
  readonly modelConfig: ModelConfig
  /** Instance name: `<model>_<group>_<index>`. */
  readonly modelInstanceName: string
  readonly modelInstanceKind: "CPU" | "GPU"
  /** Device number of the GPU; undefined for the CPU. */
  readonly modelInstanceDeviceId: number | undefined
  /**
   * Other models of the server by name, in code or in repositories. A handler calls them through its request, which
   * passes on its deadline, id and cancellation: `await request.run(models.inferBatch("bert", { ids }))`.
   */
  readonly models: NamedCalls
  /** Log of the server. The server's log settings choose the levels that are written. */
  readonly logger: ScriptLogger
  /** Counters, gauges and histograms of the model, which /metrics shows. Declare them in `initialize`. */
  readonly metrics: ScriptMetrics
  /** The same arguments in the form of Triton's Python backend, for ported code. */
  readonly args: StringArguments
}

/** Arguments of `initialize` in a model.py: strings, with the configuration as JSON in the names of config.pbtxt. */
export interface StringArguments {
  readonly model_config: string
  readonly model_instance_kind: "CPU" | "GPU"
  /** Device number; "0" for the CPU. */
  readonly model_instance_device_id: string
  readonly model_instance_name: string
  readonly model_repository: string
  readonly model_version: string
  readonly model_name: string
}

export interface Request extends HandledRequest {
  /**
   * Inputs by name, without omitted optional ones. If the model batches, axis 0 is the rows of the request; otherwise
   * tensors have the shapes of the configuration.
   */
  readonly inputs: { readonly [name: string]: Tensor.Any }
  /**
   * The place of the request in its sequence; undefined without `sequence_batching`. `id` is a bigint or a string.
   * `isReady` is false for an empty row of the strategy `direct`, whose answer is dropped. Control tensors and state
   * tensors are `inputs`, and new state is an output.
   */
  readonly sequence: ScriptSequence | undefined
}

/**
 * Outputs of one request by name. If the model batches, axis 0 has as many rows as the request, or any number in a
 * stream. Outputs may be left out; undeclared and unrequested ones are dropped. Dims that the configuration leaves open
 * (-1) are not checked.
 */
export type Outputs = Readonly<Record<string, TypedTensor>>

/**
 * Ends one step of a request that is not finished: the request is executed again with a later batch. For models with
 * `iterative_sequence`. `execute` of a stream yields it as the last response of the step.
 */
export const reschedule: typeof ScriptHandler.reschedule = ScriptHandler.reschedule

/** Outputs of a request, the error that the request fails with, or `reschedule`. */
export type Answer = Outputs | Error | typeof reschedule

/** Lifecycle hooks of an instance. */
interface Life<State> {
  /** Called once for each instance, before it takes requests. Returns the state of the instance. */
  readonly initialize?: (args: Arguments) => State | PromiseLike<State>
  /**
   * Reports whether the instance is ready. Called at each readiness request; a model is ready only if all its instances
   * are. An instance that throws, or does not respond within 5 seconds, is not ready. It still executes requests.
   */
  readonly isReady?: (state: State) => boolean | PromiseLike<boolean>
  /**
   * Called once for each sequence of which the instance has executed a request, when it is over: `ended`, `expired`,
   * `cancelled`, `replaced` by another START, `failed` or `tooLarge`. Those that live when the model unloads are
   * left to `finalize`. An asynchronous `execute` may be waiting meanwhile. Errors are logged. Not called in threads.
   */
  readonly sequenceEnded?: (id: ScriptSequence["id"], reason: EndReason, state: State) => void | PromiseLike<void>
  /**
   * Called once for each instance, after its last request. A batch that no caller waits for, and that ignores
   * `request.signal` for a second, may still run.
   */
  readonly finalize?: (state: State) => void | PromiseLike<void>
}

/** The methods of a scripted model. */
export interface ModelScript<State = unknown> extends Life<State> {
  /**
   * Executes a batch. Returns one answer for each request, in order. A thrown error fails all requests of the batch.
   * Inputs of a batch have equal shapes except for the rows, unless they set allow_ragged_batch. Without
   * dynamic_batching, a batch is one request.
   */
  readonly execute: (
    requests: ReadonlyArray<Request>,
    state: State,
  ) => ReadonlyArray<Answer> | PromiseLike<ReadonlyArray<Answer>>
}

/** Script of a model whose configuration has `model_transaction_policy { decoupled: true }`. */
export interface StreamScript<State = unknown> extends Life<State> {
  /**
   * Executes one request, of any number of rows. Returns any number of responses, as a generator or other iterable;
   * each is sent at once. A slow client applies backpressure. A client that disconnects ends the iteration at its next
   * yield and aborts `request.signal`. A thrown error fails the request, with its message. A response parameter belongs
   * to the next response.
   */
  readonly execute: (
    request: Request,
    state: State,
  ) => Iterable<Outputs | typeof reschedule> | AsyncIterable<Outputs | typeof reschedule>
}

/**
 * Types a script, and returns it unchanged:
 *
 * ```ts
 * export default ModelScript.define({
 *   initialize: ({ modelConfig }) => ({ by: Number(modelConfig.parameters["by"]?.stringValue ?? 1) }),
 *   execute: (requests, { by }) =>
 *     requests.map(({ inputs: { X } }) =>
 *       X?.datatype === "FP32" ? { Y: Tensor.map(X, (x) => x * by) } : new Error("X is missing"),
 *     ),
 * })
 * ```
 */
export const define = <State = undefined>(script: ModelScript<State>): ModelScript<State> => {
  ScriptKind.mark(script, "batch")
  return script
}

/**
 * Types a script with any number of responses:
 *
 * ```ts
 * export default ModelScript.stream({
 *   execute: function* ({ inputs: { COUNT } }) {
 *     for (let i = 0; i < Number(COUNT?.data[0]); i++) yield { NUMBER: Tensor.make("INT32", [1], Int32Array.of(i)) }
 *   },
 * })
 * ```
 */
export const stream = <State = undefined>(script: StreamScript<State>): StreamScript<State> => {
  ScriptKind.mark(script, "stream")
  return script
}
