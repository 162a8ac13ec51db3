/**
 * One request to a model and its response, inside the server: tensors in the order of the signature, with shapes and
 * byte lengths checked, and no wire types. If the model batches, axis 0 of every tensor is the batch dimension.
 */
import type { Effect, Exit, Result, Tracer } from "effect"
import type { InferenceError } from "../error/InferenceError.ts"
import type { SharedBytes } from "../tensor/SharedBytes.ts"
import type { TypedTensor } from "../tensor/TypedTensor.ts"
import type { MessageMemory } from "./MessageMemory.ts"
import type { SequencePosition } from "./SequencePosition.ts"

export type Parameter = boolean | bigint | number | string

export interface Parameters {
  readonly [name: string]: Parameter
}

export interface Request {
  /** The caller's id; empty if it gave none. */
  readonly id: string
  /** Inputs by position in the signature; undefined for an omitted optional input. */
  readonly inputs: ReadonlyArray<TypedTensor | undefined>
  /** Extent of the batch dimension; 1 for a model that does not batch. */
  readonly rows: number
  readonly parameters: Parameters
  /** The declared parameters, decoded; absent if the model declares none. */
  readonly declared?: { readonly [name: string]: unknown }
  /** Deadline of the caller, as MonotonicTime. */
  readonly deadline: number | undefined
  /**
   * Identifies the connection that the request has come by, which shares a queue with the others; undefined for a
   * request of this process.
   */
  readonly connection?: object | undefined
  /** Memory of its message, if the transport may free it. */
  readonly memory?: MessageMemory | undefined
  /** Names of the outputs that the caller wants; absent or empty for all. A model answers all of them in any case. */
  readonly requestedOutputs?: ReadonlyArray<string>
  /** Where a decoupled model's responses go, ahead of its reply; any other model answers by the reply alone. */
  readonly emit?: Emit
  /**
   * Whether `emit` takes responses that are errors, behind which the request goes on. Otherwise the first error ends
   * the request.
   */
  readonly takesErrors?: boolean
  /** Counts bytes of responses that wait for the caller, and negative ones once they do not. Absent if uncounted. */
  readonly hold?: (bytes: number) => void
  /** Absent for a request that is not traced. */
  readonly trace?: Trace | undefined
  /**
   * Shared memory that takes outputs, by their names, in place of the response. Only for a model that maps shared
   * memory, which may ignore any of them.
   */
  readonly targets?: ReadonlyMap<string, SharedBytes> | undefined
  /** Set by the queue of a model with sequences. */
  readonly sequence?: SequencePosition
}

/** A moment on the way of a request, by its name in Triton's traces. */
export type TracePoint =
  | "REQUEST_START"
  | "QUEUE_START"
  | "COMPUTE_START"
  | "COMPUTE_INPUT_END"
  | "COMPUTE_OUTPUT_START"
  | "COMPUTE_END"
  | "INFER_RESPONSE_COMPLETE"
  | "REQUEST_END"

/** Takes the moments of one request, in nanoseconds of the monotonic clock; perhaps not in their order. */
export interface Trace {
  readonly at: (point: TracePoint, nanos: number) => void
  /** Takes the rows of the batch that has executed the request; absent where these are not traced. */
  readonly batch?: ((rows: number) => void) | undefined
  /** Records a moment that the code of the model names; absent where these are not traced. */
  readonly activity?: ((name: string, nanos: number) => void) | undefined
  /** The trace of a request to another model, made to answer this one; absent where these are not traced. */
  readonly child?: ((request: ChildRequest) => ChildTrace) | undefined
  /** The span that is the parent of the handler's spans; absent without a tracer. */
  readonly span?: Tracer.Span
  /** The request is executed in the batch of this span. */
  readonly joins?: (batch: Tracer.AnySpan) => void
  /**
   * Begins the trace of a call from the handler of this request. `secondary`, the call's own trace, receives its points
   * too.
   */
  readonly below?: (name: string, secondary: Trace | undefined) => CallTrace
}

/** A request to another model, as far as its trace names it. */
export interface ChildRequest {
  readonly model: string
  readonly version: string
  readonly id: string
}

export interface NamedTensor {
  readonly name: string
  readonly tensor: TypedTensor
}

/** The trace of a request that a model makes. It reads the clock itself. */
export interface ChildTrace extends Trace {
  readonly begin: (inputs: ReadonlyArray<NamedTensor>) => void
  readonly responded: (outputs: ReadonlyArray<NamedTensor>) => void
  /** Harmless when it has ended already. */
  readonly end: () => void
}

/** The trace of a call, which its caller ends. */
export interface CallTrace extends Trace {
  readonly end: (exit: Exit.Exit<unknown, unknown>) => void
}

export interface Response {
  /** By position in the signature's outputs; undefined for one that the model has left out. */
  readonly outputs: ReadonlyArray<TypedTensor | undefined>
  readonly parameters: Parameters
  /** Set if this response is an error, which a request receives only if it takes errors. It has no outputs then. */
  readonly error?: InferenceError
  /** Whether this answers nothing yet: the request returns to its queue, for another execution. Default false. */
  readonly isRescheduled?: boolean
  /**
   * Set if the request goes on after its batch: this response answers nothing yet. The reply of the request follows
   * later, and it may emit responses until then.
   */
  readonly rest?: Rest
  /**
   * Lets the memory of the outputs be used again. The last reader of the outputs may call it; without the call, the
   * garbage collector frees them. Calls after the first do nothing. Absent for memory that is not used again.
   */
  readonly release?: (() => void) | undefined
}

/** Takes the reply of a request that goes on after its batch. Called once, when the batch has ended. */
export type Rest = (reply: Reply) => Cancel

/**
 * Receives one response of a request. Completes once the caller accepts more; fails if the caller cannot receive it.
 * The call itself may take the response, so its effect is to be run once, and at once.
 * `isLast` announces that only the reply follows.
 */
export type Emit = (response: Response, isLast?: boolean) => Effect.Effect<void, InferenceError>

/**
 * Called once, with the outcome of a request. Of a decoupled model a success says that it was the last, without
 * outputs.
 */
export type Reply = (outcome: Result.Result<Response, InferenceError>) => void

/** Cancels the request: its reply will not be called. Does nothing after the reply. */
export type Cancel = () => void

/** Parameters of a request or response that has none. */
export const noParameters: Parameters = {}

/** Prefix of error messages of request checks and schedulers, by which a caller finds the request. */
export const errorPrefix = (request: { readonly id: string }): string =>
  `[request id: ${request.id === "" ? "<id_unknown>" : request.id}] `
