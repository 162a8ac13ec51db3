/** Typed calls of a model as its callers see them, and their options. They are effects; PromiseCall.ts has promises. */
import type { Duration, Effect, Stream } from "effect"
import type { RequestParametersInput, CallError, Declared, ResponseParameters } from "../model/Declared.ts"
import type { Batched, Input, InputBatch, Sample } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import type { QueuedCallOptions } from "../model/QueuedCall.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import type { ChunkOptions } from "./ChunkedCall.ts"

interface CommonCallOptions extends QueuedCallOptions {
  /** Id of the request, for logs and error texts. */
  readonly id?: string
  /** Time until the response must be there. A queued request leaves the queue when its timeout passes. */
  readonly timeout?: Duration.Input
}

/**
 * Options of a call. `parameters` are those of the request, for the handler (RequestContext). A model that declares no
 * parameters takes any: integers are bigint, doubles number.
 */
export type CallOptions<P extends Declared = undefined> = CommonCallOptions &
  ({} extends RequestParametersInput<P>
    ? { readonly parameters?: RequestParametersInput<P> }
    : { readonly parameters: RequestParametersInput<P> })

/** Options of a call with several samples. */
export type BatchCallOptions<P extends Declared = undefined> = CallOptions<P> & ChunkOptions

/** The options as the last argument, which is required if the model has a required parameter. */
export type CallArguments<P extends Declared, Options = CallOptions<P>> =
  {} extends RequestParametersInput<P> ? [options?: Options] : [options: Options]

/** The outputs of a response together with its parameters. */
export interface Answer<A, P extends Declared = undefined> {
  readonly outputs: A
  /**
   * Decoded as the model declares; all parameters of a model that declares none: integers are bigint, doubles number.
   */
  readonly parameters: ResponseParameters<P>
}

/** The typed calls of a model. */
export interface Inference<I extends Fields, O extends Fields, P extends Declared = undefined> {
  readonly infer: (sample: Input<I>, ...options: CallArguments<P>) => Effect.Effect<Sample<O>, CallError<P>>
  /** Streams the responses of one sample: any number from a decoupled model, one from any other. */
  readonly stream: (sample: Input<I>, ...options: CallArguments<P>) => Stream.Stream<Sample<O>, CallError<P>>
  /**
   * Streams the responses of one request of several samples along axis 0, at most `maxBatchSize`. A response has any
   * number of rows (Model.streamBatch); that of a model that is not decoupled has those of the request.
   */
  readonly streamBatch: (batch: InputBatch<I>, ...options: CallArguments<P>) => Stream.Stream<Batched<O>, CallError<P>>
  /** Several samples along axis 0. More than `maxBatchSize` go in chunks; see ChunkOptions. */
  readonly inferBatch: (
    batch: InputBatch<I>,
    ...options: CallArguments<P, BatchCallOptions<P>>
  ) => Effect.Effect<Batched<O>, CallError<P>>
  /**
   * The same calls with the parameters of their responses, which handlers set (RequestContext). Of a batch that goes in
   * chunks, those of the last chunk that has them.
   */
  readonly withParameters: {
    readonly infer: (
      sample: Input<I>,
      ...options: CallArguments<P>
    ) => Effect.Effect<Answer<Sample<O>, P>, CallError<P>>
    readonly stream: (
      sample: Input<I>,
      ...options: CallArguments<P>
    ) => Stream.Stream<Answer<Sample<O>, P>, CallError<P>>
    readonly streamBatch: (
      batch: InputBatch<I>,
      ...options: CallArguments<P>
    ) => Stream.Stream<Answer<Batched<O>, P>, CallError<P>>
    readonly inferBatch: (
      batch: InputBatch<I>,
      ...options: CallArguments<P, BatchCallOptions<P>>
    ) => Effect.Effect<Answer<Batched<O>, P>, CallError<P>>
  }
  /** The model without its types, as front ends and the registry use it. */
  readonly model: RunningModel
}
