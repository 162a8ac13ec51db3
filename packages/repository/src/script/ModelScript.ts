/**
 * A model of a repository in TypeScript or JavaScript: what `model.ts` or `model.js` exports by default. Its inputs and
 * outputs are those of config.pbtxt. Models that know their types at compile time are Model.Service's.
 */
import type { HandledRequest, Tensor } from "@nereid/core"
import type { NamedCalls } from "@nereid/core/internal/call/NamedCalls"
import type { TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import type { ModelConfig } from "@nereid/protocol/model_config"

/** What an instance is told when it is made. */
export interface Arguments {
  readonly modelName: string
  readonly modelVersion: string
  /** The directory of the model. */
  readonly modelRepository: string
  /** Complete, with its defaults; what a script is configured by stands in its `parameters`. */
  readonly modelConfig: ModelConfig
  /** `<model>_<group>_<index>`. */
  readonly modelInstanceName: string
  readonly modelInstanceKind: "CPU" | "GPU"
  /** Of the GPU; undefined for the CPU. */
  readonly modelInstanceDeviceId: number | undefined
  /**
   * The other models of the server, in code or in repositories, by name. Code that answers a request has it ask them, so that they
   * know its deadline, its id and its end: `await request.run(models.inferBatch("bert", { ids }))`.
   */
  readonly models: NamedCalls
  /** The same as Triton's Python backend has it, for code that comes from there. */
  readonly args: StringArguments
}

/** What `initialize` of a model.py is given: strings, the configuration as JSON with the names of config.pbtxt. */
export interface StringArguments {
  readonly model_config: string
  readonly model_instance_kind: "CPU" | "GPU"
  /** "0" for the CPU. */
  readonly model_instance_device_id: string
  readonly model_instance_name: string
  readonly model_repository: string
  readonly model_version: string
  readonly model_name: string
}

export interface Request extends HandledRequest {
  /**
   * By name, without optional ones that were left out: the rows of the request along axis 0, one where the model does not batch.
   */
  readonly inputs: { readonly [name: string]: Tensor.Any }
}

/** The outputs of one request by their names, of as many rows. */
export type Outputs = Readonly<Record<string, TypedTensor>>

/** The outputs; or what the request failed with. */
export type Answer = Outputs | Error

/** What an instance begins and ends with. */
interface Life<State> {
  /** Once for each instance, before it takes requests. What it returns is the state of the instance. */
  readonly initialize?: (args: Arguments) => State | PromiseLike<State>
  /**
   * Whether the instance is ready, asked each time that a caller asks for the readiness of the model, which all its instances must
   * have. One that throws, or has not answered after five seconds, is not. Requests are executed all the same.
   */
  readonly isReady?: (state: State) => boolean | PromiseLike<boolean>
  /** Once for each instance, when it takes no more requests. */
  readonly finalize?: (state: State) => void | PromiseLike<void>
}

export interface ModelScript<State = unknown> extends Life<State> {
  /**
   * The requests of one batch, and one answer for each, in their order. An error that is thrown is the failure of all of them.
   * Their inputs agree in all extents but the rows, unless they have allow_ragged_batch. Without dynamic_batching a batch is one
   * request.
   */
  readonly execute: (
    requests: ReadonlyArray<Request>,
    state: State,
  ) => ReadonlyArray<Answer> | PromiseLike<ReadonlyArray<Answer>>
}

/** Of a model whose configuration has `model_transaction_policy { decoupled: true }`. */
export interface StreamScript<State = unknown> extends Life<State> {
  /**
   * One request, of one row, and any number of responses, each sent when it is there: a generator, or whatever can be iterated.
   * A reader that is slow slows it; one that leaves ends it where it yields, and aborts `request.signal`. An error that is thrown
   * ends the request with it.
   */
  readonly execute: (request: Request, state: State) => Iterable<Outputs> | AsyncIterable<Outputs>
}

/**
 * Types a script; nothing else:
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
export const define = <State = undefined>(script: ModelScript<State>): ModelScript<State> => script

/**
 * The same for a script with any number of responses:
 *
 * ```ts
 * export default ModelScript.stream({
 *   execute: function* ({ inputs: { COUNT } }) {
 *     for (let i = 0; i < Number(COUNT?.data[0]); i++) yield { NUMBER: Tensor.make("INT32", [1, 1], Int32Array.of(i)) }
 *   },
 * })
 * ```
 */
export const stream = <State = undefined>(script: StreamScript<State>): StreamScript<State> => script
