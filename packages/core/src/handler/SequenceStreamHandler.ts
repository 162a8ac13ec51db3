/** A decoupled model with sequences: a function of one sample and a state, which returns any number of responses. */
import { Effect, type Layer, Result, Stream } from "effect"
import type { ModelClass } from "../call/ModelClass.ts"
import type { Declared, Failing, StateOf } from "../model/Declared.ts"
import type { Literals, Sample } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import type { GivenOptions } from "../model/GivenOptions.ts"
import * as SampleCodec from "../model/SampleCodec.ts"
import { noParameters } from "../request/Request.ts"
import type { SequencePosition } from "../request/SequencePosition.ts"
import type { TypedTensor } from "../tensor/TypedTensor.ts"
import type { CheckedHandler, Make } from "./CheckedHandler.ts"
import type {
  FirstMistake,
  HandledSequence,
  SchemaOf,
  SequenceResponse,
  StreamedOutputsIn,
  StreamedStateMistake,
  Unsequenced,
} from "./HandledSequence.ts"
import * as Handler from "./Handler.ts"
import type { OutputMistake } from "./OutputMistake.ts"
import type { HandledRequest, RequestContext } from "./RequestContext.ts"
import { unhosted } from "./SequenceHandler.ts"
import { part, positionOf, SequenceStates } from "./SequenceStates.ts"
import {
  type InForm,
  last,
  type RequirementsOf,
  type ResponseOf,
  type Responses,
  responses,
  samples,
  streamed,
} from "./StreamHandler.ts"

/** One decoded sample and the state in, any number of responses and states out. */
export type SequenceStreamHandler<I extends Fields, O extends Fields, E, R, P extends Declared> = (
  sample: Sample<I>,
  request: HandledSequence<P>,
) => Responses<SequenceResponse<O, P>, E, R>

type CheckedSequenceStreamHandler<
  N extends string,
  I extends Fields,
  O extends Fields,
  A,
  EMake,
  RMake,
  P extends Declared,
> = CheckedHandler<
  [sample: Sample<I>, request: HandledSequence<P>],
  A,
  Responses<SequenceResponse<O, P>, never, never>,
  Responses<SequenceResponse<O, P>, Failing<P>, unknown>,
  InForm<A, SequenceResponse<O, P>, Failing<P>>,
  FirstMistake<
    Unsequenced<N, P, A>,
    FirstMistake<
      OutputMistake<
        N,
        Sample<O>,
        StreamedOutputsIn<ResponseOf<A>>,
        A,
        Responses<SequenceResponse<O, P>, Failing<P>, unknown>
      >,
      StreamedStateMistake<N, SchemaOf<P>, StateOf<P>, ResponseOf<A>>
    >
  >,
  EMake,
  RMake
>

/**
 * A decoupled model with sequences from a function that answers one sample with a stream or an iterable. Its elements
 * are responses, states, or both:
 *
 * ```ts
 * Model.sequenceStream(Words, function* ({ TEXT }, { state: { REST } }) {
 *   const words = (REST + TEXT).split(" ")
 *   const rest = words.pop() ?? ""
 *   for (const WORD of words) yield { outputs: { WORD } }
 *   yield { state: { REST: rest } }
 * })
 * ```
 *
 * The last state is kept once the stream has ended; a stream that fails keeps the state as it was.
 */
export function sequenceStream<
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
  make: CheckedSequenceStreamHandler<N, I, O, A, EMake, RMake, P>,
  options?: GivenOptions<Options, Handler.StreamOptions<I>>,
): Layer.Layer<
  Self,
  EMake | Handler.Failure<Options>,
  Handler.Needs<RMake, Exclude<RequirementsOf<A>, RequestContext>, Options>
>
export function sequenceStream<
  Self,
  N extends string,
  I extends Fields,
  O extends Fields,
  E extends Failing<P>,
  R,
  EMake,
  RMake,
  P extends Declared,
  const Options extends Handler.StreamOptions<I>,
>(
  model: ModelClass<Self, N, I, O, P>,
  make: Make<SequenceStreamHandler<I, O, E, R, P>, EMake, RMake>,
  options?: GivenOptions<Options, Handler.StreamOptions<I>>,
): Layer.Layer<Self, EMake | Handler.Failure<Options>, Handler.Needs<RMake, Exclude<R, RequestContext>, Options>> {
  const { definition } = model
  const { name, signature, maxBatchSize } = definition
  const states = new SequenceStates(definition)
  const stateSpecs = states.inner.signature.outputs.slice(signature.outputs.length)
  const stateCodec = SampleCodec.make(states.inner.outputs, stateSpecs)
  const outputCodec = SampleCodec.make(definition.outputs, signature.outputs)
  /** State tensors of requests whose streams have not ended. */
  const returned = new WeakMap<SequencePosition, ReadonlyArray<TypedTensor>>()

  const keep = (position: SequencePosition, state: unknown) => {
    if (!states.isTensors) return states.keepValue(position, state)
    const encoded = stateCodec.encode(state, maxBatchSize > 0)
    if (Result.isFailure(encoded)) throw Handler.wrongOutput(name, encoded.failure)
    returned.set(position, Handler.present(encoded.success))
  }

  const handle = (
    handler: SequenceStreamHandler<I, O, E, R, P>,
    sample: Sample<Fields>,
    request: HandledRequest<P>,
  ): Stream.Stream<Sample<O> | Literals<O>, E, R> => {
    const position = positionOf(request)
    const { inputs, state } = states.split(sample)
    const handled = states.handled(request, position, state)
    // The inner model has the inputs that the types of this one declare. No type names the errors that the handler's
    // code throws.
    const respond = () => handler(inputs as Sample<I>, handled)
    const all = responses(respond, sample, request) as Stream.Stream<SequenceResponse<O, P>, E, R>
    return Stream.flatMap(all, (response) => {
      if (Object.hasOwn(response, "state")) keep(position, part(response, "state"))
      return response.outputs === undefined ? Stream.empty : Stream.succeed(response.outputs)
    })
  }

  return streamed<Self, N, I, O, Sample<Fields>, Sample<O> | Literals<O>, E, R, EMake, RMake, P, Options>(
    model,
    Effect.map(
      unhosted(name, make),
      (handler) => (sample: Sample<Fields>, request: HandledRequest<P>) => handle(handler, sample, request),
    ),
    options,
    {
      decode: samples(states.inner).decode,
      encode: (response) => outputCodec.encode(response, maxBatchSize > 0),
      sequences: {
        committing: (execute) => states.committing(execute),
        last: ({ sequence }) => {
          const tensors = sequence && returned.get(sequence)
          if (tensors === undefined) return last
          return { outputs: [...signature.outputs.map(() => undefined), ...tensors], parameters: noParameters }
        },
      },
    },
  )
}
