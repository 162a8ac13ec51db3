/**
 * A decoupled model from a function of all rows of one request, which returns any number of responses. StreamHandler.ts
 * has functions of one sample.
 */
import { type Layer, Result } from "effect"
import type { CheckedHandler, Make } from "./CheckedHandler.ts"
import type { ModelClass } from "../call/ModelClass.ts"
import { collect, named, withBatch, withoutBatch } from "../model/BatchedTensors.ts"
import type { Declared, Failing } from "../model/Declared.ts"
import type { Batched, Definition } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import type { GivenOptions } from "../model/GivenOptions.ts"
import type * as Handler from "./Handler.ts"
import type { OutputMistake } from "./OutputMistake.ts"
import type { HandledRequest, RequestContext } from "./RequestContext.ts"
import {
  type InForm,
  type RequirementsOf,
  type ResponseOf,
  type Responses,
  type StreamForm,
  streamed,
} from "./StreamHandler.ts"

/** The rows of one request in, along axis 0; any number of responses of any number of rows out. */
export type StreamBatchHandler<I extends Fields, O extends Fields, E, R, P extends Declared = undefined> = (
  rows: Batched<I>,
  request: HandledRequest<P>,
) => Responses<Batched<O>, E, R>

type StreamBatchResult<O extends Fields, E, R> = Responses<Batched<O>, E, R>

type CheckedStreamBatchHandler<
  N extends string,
  I extends Fields,
  O extends Fields,
  A,
  EMake,
  RMake,
  P extends Declared,
> = CheckedHandler<
  [rows: Batched<I>, request: HandledRequest<P>],
  A,
  StreamBatchResult<O, never, never>,
  StreamBatchResult<O, Failing<P>, unknown>,
  InForm<A, Batched<O>, Failing<P>>,
  OutputMistake<N, Batched<O>, ResponseOf<A>, A, StreamBatchResult<O, Failing<P>, unknown>>,
  EMake,
  RMake
>

/**
 * `Model.stream` for requests of as many rows as `maxBatchSize` says: the function receives tensors with the rows along
 * axis 0, and each response is tensors of any number of rows. Without batching, the function receives and returns one
 * row. An instance executes as many requests concurrently as the model has rows in a batch.
 */
export function streamBatch<
  Self,
  N extends string,
  I extends Fields,
  O extends Fields,
  A = never,
  EMake = never,
  RMake = never,
  P extends Declared = undefined,
  const Options extends Handler.StreamOptions<I> = {},
>(
  model: ModelClass<Self, N, I, O, P>,
  make: CheckedStreamBatchHandler<N, I, O, A, EMake, RMake, P>,
  options?: GivenOptions<Options, Handler.StreamOptions<I>>,
): Layer.Layer<
  Self,
  EMake | Handler.Failure<Options>,
  Handler.Needs<RMake, Exclude<RequirementsOf<A>, RequestContext>, Options>
>
export function streamBatch<
  Self,
  N extends string,
  I extends Fields,
  O extends Fields,
  E extends Failing<P> = never,
  R = never,
  EMake = never,
  RMake = never,
  P extends Declared = undefined,
  const Options extends Handler.StreamOptions<I> = {},
>(
  model: ModelClass<Self, N, I, O, P>,
  make: Make<StreamBatchHandler<I, O, E, R, P>, EMake, RMake>,
  options?: GivenOptions<Options, Handler.StreamOptions<I>>,
): Layer.Layer<Self, EMake | Handler.Failure<Options>, Handler.Needs<RMake, Exclude<R, RequestContext>, Options>> {
  return streamed(model, make, options, rows(model.definition))
}

const rows = <I extends Fields, O extends Fields>({
  signature,
  maxBatchSize,
}: Definition<I, O>): StreamForm<Batched<I>, Batched<O>> => {
  const batching = maxBatchSize > 0
  return {
    decode: ({ inputs }) => {
      const tensors = batching ? inputs : inputs.map((tensor) => tensor && withBatch(tensor))
      // Validated tensors of exactly the inputs, as in BatchHandler.ts.
      return Result.succeed(named(signature.inputs, tensors) as Batched<I>)
    },
    encode: (response) =>
      Result.map(collect(signature.outputs, response, batching ? undefined : 1), ({ tensors }) =>
        batching ? tensors : tensors.map((tensor) => tensor && withoutBatch(tensor)),
      ),
  }
}
