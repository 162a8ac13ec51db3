/** A model as its callers see it: typed calls and their options. Effects here; the same by promises is in PromiseCall.ts. */
import type { Duration, Effect, Stream } from "effect"
import type { Asked, CallError, Declared, Told } from "../model/Declared.ts"
import type { Batched, Input, InputBatch, Sample } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import type { QueuedCallOptions } from "../model/QueuedCall.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import type { ChunkOptions } from "./ChunkedCall.ts"

interface CommonCallOptions extends QueuedCallOptions {
  /** Shows up in logs and error texts. */
  readonly id?: string
  /** The answer must be there within this time; a queued request leaves its queue when it has passed. */
  readonly timeout?: Duration.Input
}

/**
 * How a model is called. `parameters` are those of the request, for the handler (RequestContext): what the model declares, and
 * where it declares none, any; then integers are bigint, doubles number.
 */
export type CallOptions<P extends Declared = undefined> = CommonCallOptions &
  ({} extends Asked<P> ? { readonly parameters?: Asked<P> } : { readonly parameters: Asked<P> })

/** How a model is called with several samples. */
export type BatchCallOptions<P extends Declared = undefined> = CallOptions<P> & ChunkOptions

/** The options as the last argument: of a model with a required parameter they cannot be left out. */
export type CallArguments<P extends Declared, Options = CallOptions<P>> =
  {} extends Asked<P> ? [options?: Options] : [options: Options]

/** An answer for callers who want the parameters of the response beside its outputs. */
export interface Answer<A, P extends Declared = undefined> {
  readonly outputs: A
  /** What the model declares, decoded, and where it declares none, all that came: integers are bigint, doubles number. */
  readonly parameters: Told<P>
}

/** A model as its callers see it. */
export interface Inference<I extends Fields, O extends Fields, P extends Declared = undefined> {
  readonly infer: (sample: Input<I>, ...options: CallArguments<P>) => Effect.Effect<Sample<O>, CallError<P>>
  /** The responses of one sample, as they come: any number from a decoupled model, one from any other. */
  readonly stream: (sample: Input<I>, ...options: CallArguments<P>) => Stream.Stream<Sample<O>, CallError<P>>
  /** Several samples along axis 0. More than `maxBatchSize` go in chunks; see ChunkOptions. */
  readonly inferBatch: (
    batch: InputBatch<I>,
    ...options: CallArguments<P, BatchCallOptions<P>>
  ) => Effect.Effect<Batched<O>, CallError<P>>
  /**
   * The same calls with the parameters of their responses, which handlers set (RequestContext). Of a batch that goes in chunks,
   * those of the last chunk that has them.
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
    readonly inferBatch: (
      batch: InputBatch<I>,
      ...options: CallArguments<P, BatchCallOptions<P>>
    ) => Effect.Effect<Answer<Batched<O>, P>, CallError<P>>
  }
  /** The model without its types, as front ends and the registry use it. */
  readonly model: RunningModel
}
