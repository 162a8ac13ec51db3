/**
 * A decoupled model from a function of one sample, which returns a Stream or an iterable of any number of responses.
 * StreamBatchHandler.ts has functions of several rows. Handlers with one response are in EachHandler.ts and
 * BatchHandler.ts.
 */
import { type Context, Effect, Exit, type Layer, Result, Stream } from "effect"
import type { HandlerEnvironment } from "../call/Caller.ts"
import type { CheckedHandler, Make } from "./CheckedHandler.ts"
import type { Definition, Literals, Sample } from "../model/Definition.ts"
import type { ModelClass } from "../call/ModelClass.ts"
import { type InferenceError, InvalidRequest } from "../error/InferenceError.ts"
import type { Fields } from "../model/Field.ts"
import type { FirstMistake, Sequenced } from "./HandledSequence.ts"
import * as Handler from "./Handler.ts"
import * as Iteration from "./Iteration.ts"
import type { GivenOptions } from "../model/GivenOptions.ts"
import { errorPrefix, noParameters, type Parameters, type Request, type Response } from "../request/Request.ts"
import { fromEffect, type Instance } from "../instance/Instance.ts"
import { withoutBatch } from "../model/BatchedTensors.ts"
import type { Declared, Failing } from "../model/Declared.ts"
import type { OutputMistake } from "./OutputMistake.ts"
import type { HandledRequest, RequestContext } from "./RequestContext.ts"
import { RequestScope } from "./RequestScope.ts"
import * as SampleCodec from "../model/SampleCodec.ts"
import type { TypedTensor } from "../tensor/TypedTensor.ts"
import { ThrownError } from "./UserCode.ts"

/** Return types of a handler. Generators, synchronous or asynchronous, and arrays are iterables. */
export type Responses<A, E, R> = Stream.Stream<A, E, R> | AsyncIterable<A> | Iterable<A>

/** One decoded sample in, any number out. */
export type StreamHandler<I extends Fields, O extends Fields, E, R, P extends Declared = undefined> = (
  sample: Sample<I>,
  request: HandledRequest<P>,
) => Responses<Sample<O> | Literals<O>, E, R>

type StreamHandlerResult<O extends Fields, E, R> = Responses<Sample<O> | Literals<O>, E, R>

/** One of several responses. */
export type ResponseOf<A> =
  A extends Stream.Stream<infer One, infer _E, infer _R>
    ? One
    : A extends AsyncIterable<infer One>
      ? One
      : A extends Iterable<infer One>
        ? One
        : never

/** The services that a returned stream needs. */
export type RequirementsOf<A> = 0 extends 1 & A
  ? never
  : A extends Stream.Stream<infer _A, infer _E, infer R>
    ? R
    : never

/** Responses in the form of A. */
export type InForm<A, One, E> =
  A extends Stream.Stream<infer _A, infer _E, infer _R>
    ? Stream.Stream<One, E, unknown>
    : A extends AsyncIterable<infer _A>
      ? AsyncIterable<One>
      : Iterable<One>

type CheckedStreamHandler<
  N extends string,
  I extends Fields,
  O extends Fields,
  A,
  EMake,
  RMake,
  P extends Declared,
> = CheckedHandler<
  [sample: Sample<I>, request: HandledRequest<P>],
  A,
  StreamHandlerResult<O, never, never>,
  StreamHandlerResult<O, Failing<P>, unknown>,
  InForm<A, Sample<O> | Literals<O>, Failing<P>>,
  FirstMistake<
    Sequenced<N, P, A>,
    OutputMistake<N, Sample<O>, ResponseOf<A>, A, StreamHandlerResult<O, Failing<P>, unknown>>
  >,
  EMake,
  RMake
>

/**
 * Provides a model from a function that answers one sample with a stream. A slow reader applies backpressure. A reader
 * that leaves interrupts the stream: `return` of the iterator is called, and `request.signal` is aborted. An instance
 * executes as many requests concurrently as the model has rows in a batch (one if it does not batch); a request has one
 * row.
 *
 * A handler has its RequestContext. A parameter that it sets applies to the later responses.
 *
 * `make` is the handler, or an Effect that builds one, once per instance, in a scope that closes when the model
 * unloads.
 */
export function stream<
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
  make: CheckedStreamHandler<N, I, O, A, EMake, RMake, P>,
  options?: GivenOptions<Options, Handler.StreamOptions<I>>,
): Layer.Layer<
  Self,
  EMake | Handler.Failure<Options>,
  Handler.Needs<RMake, Exclude<RequirementsOf<A>, RequestContext>, Options>
>
export function stream<
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
  make: Make<StreamHandler<I, O, E, R, P>, EMake, RMake>,
  options?: GivenOptions<Options, Handler.StreamOptions<I>>,
): Layer.Layer<Self, EMake | Handler.Failure<Options>, Handler.Needs<RMake, Exclude<R, RequestContext>, Options>> {
  return streamed(model, make, options, samples(model.definition))
}

/** How a handler receives a request, and gives its responses. */
export interface StreamForm<In, O> {
  readonly decode: (request: Request) => Result.Result<In, InferenceError>
  readonly encode: (response: O) => Result.Result<ReadonlyArray<TypedTensor | undefined>, SampleCodec.SampleError>
  /** Of a handler that gets the states of sequences. */
  readonly sequences?: {
    /** The reply behind all responses, with the state tensors for the next request. */
    readonly last: (request: Request) => Response
    readonly committing: (execute: Instance["execute"]) => Instance["execute"]
  }
}

/** One sample, for requests of one row. */
export const samples = <I extends Fields, O extends Fields>({
  name,
  inputs,
  outputs,
  signature,
  maxBatchSize,
}: Definition<I, O>): StreamForm<Sample<I>, Sample<O> | Literals<O>> => {
  const inputCodec = SampleCodec.make(inputs, signature.inputs)
  const outputCodec = SampleCodec.make(outputs, signature.outputs)
  const batching = maxBatchSize > 0
  return {
    decode: (request) => {
      if (request.rows > 1) return Result.fail(tooManyRows(name, request))
      const tensors = batching ? request.inputs.map((tensor) => tensor && withoutBatch(tensor)) : request.inputs
      const decoded = inputCodec.decode(tensors)
      if (Result.isFailure(decoded)) return Result.fail(Handler.wrongInput(name, request, decoded.failure))
      // The codec has put exactly the fields of I into it, each decoded by its own Schema.
      return Result.succeed(decoded.success as Sample<I>)
    },
    encode: (response) => outputCodec.encode(response, batching),
  }
}

/** Provides a model from a function of one request, in a form. */
export const streamed = <
  Self,
  N extends string,
  I extends Fields,
  O extends Fields,
  In,
  A,
  E extends Failing<P>,
  R,
  EMake,
  RMake,
  P extends Declared,
  const Options extends Handler.StreamOptions<I>,
>(
  model: ModelClass<Self, N, I, O, P>,
  make: Make<(input: In, request: HandledRequest<P>) => Responses<A, E, R>, EMake, RMake>,
  options: GivenOptions<Options, Handler.StreamOptions<I>> | undefined,
  form: StreamForm<In, A>,
): Layer.Layer<Self, EMake | Handler.Failure<Options>, Handler.Needs<RMake, Exclude<R, RequestContext>, Options>> => {
  const { name, maxBatchSize } = model.definition

  const emit = (request: Request, response: A, parameters: Parameters): Effect.Effect<void, InferenceError> => {
    const encoded = form.encode(response)
    if (Result.isFailure(encoded)) return Effect.fail(Handler.wrongOutput(name, encoded.failure))
    return request.emit?.({ outputs: encoded.success, parameters }) ?? Effect.void
  }

  const respond = (
    handler: (input: In, request: HandledRequest<P>) => Responses<A, E, R>,
    request: Request,
    handling: HandlerEnvironment,
  ) => {
    const scope = new RequestScope<P>(request, handling)
    return Effect.suspend(() => {
      const decoded = form.decode(request)
      if (Result.isFailure(decoded)) return Effect.fail(decoded.failure)
      const emitOne = (response: A) => emit(request, response, scope.responseParameters())
      return Effect.map(forEach(handler, decoded.success, scope, emitOne), () => form.sequences?.last(request) ?? last)
    }).pipe(
      Effect.onError(() => Effect.sync(() => scope.cancel())),
      Effect.updateContext((context: Context.Context<Exclude<R, RequestContext>>) => scope.context<R>(context)),
    )
  }

  return Handler.instances(
    model,
    make,
    options,
    (handler, context: Context.Context<Exclude<R, RequestContext>>, handling) => {
      const execute = fromEffect(context, (batch) =>
        Effect.forEach(batch.requests, (request) =>
          outcome(model.definition, handling.instance, respond(handler, request, handling)),
        ).pipe(Effect.map(Handler.executionResult)),
      )
      return form.sequences?.committing(execute) ?? execute
    },
    {
      decoupled: true,
      concurrency: Math.max(1, maxBatchSize),
      hasSequences: form.sequences !== undefined,
    },
  )
}

/** Calls the handler, and takes its responses one by one. Exceptions become failures. */
const forEach = <I, A, E, E2, R, P extends Declared>(
  handler: (sample: I, request: HandledRequest<P>) => Responses<A, E, R>,
  sample: I,
  request: HandledRequest<P>,
  emit: (response: A) => Effect.Effect<void, E2>,
): Effect.Effect<void, E | E2 | ThrownError, R> => {
  const returned = called(handler, sample, request)
  if (Result.isFailure(returned)) return Effect.fail(returned.failure)
  const responses = returned.success
  if (!Stream.isStream(responses)) return Iteration.forEach(responses, emit, thrown)
  return Stream.runForEachArray(responses, (several) =>
    // Most arrays have one response, which needs no loop.
    several.length === 1 ? emit(several[0]) : Effect.forEach(several, emit, { discard: true }),
  )
}

/** The handler's responses as a stream, pulled one by one. Exceptions become failures. */
export const responses = <I, A, E, R, P extends Declared>(
  handler: (sample: I, request: HandledRequest<P>) => Responses<A, E, R>,
  sample: I,
  request: HandledRequest<P>,
): Stream.Stream<A, E | ThrownError, R> => {
  const returned = called(handler, sample, request)
  if (Result.isFailure(returned)) return Stream.fail(returned.failure)
  const responses = returned.success
  if (Stream.isStream(responses)) return responses
  return Stream.fromAsyncIterable(Iteration.asynchronous(responses), thrown)
}

const called = <I, A, E, R, P extends Declared>(
  handler: (sample: I, request: HandledRequest<P>) => Responses<A, E, R>,
  sample: I,
  request: HandledRequest<P>,
): Result.Result<Responses<A, E, R>, ThrownError> => Result.try({ try: () => handler(sample, request), catch: thrown })

const thrown = (error: unknown) => new ThrownError(error)

/** Says that there are no more. */
export const last: Response = { outputs: [], parameters: noParameters }

const tooManyRows = (model: string, request: Request) => {
  const text = `inference request batch-size must be <= 1 for '${model}'`
  return new InvalidRequest({ message: `${errorPrefix(request)}${text}, got ${request.rows}` })
}

/**
 * A request's own outcome, so that the others of its batch go on. What was unexpected is logged here and stays here.
 */
const outcome = <E, R>(model: Handler.ModelErrors, instance: string, response: Effect.Effect<Response, E, R>) =>
  Effect.exit(response).pipe(
    Effect.flatMap((exit): Effect.Effect<Result.Result<Response, InferenceError>> => {
      if (Exit.isSuccess(exit)) return Effect.succeed(Result.succeed(exit.value))
      const { error, unexpected } = Handler.failure(model, instance, exit.cause)
      const failed = Result.fail(error)
      return unexpected === undefined
        ? Effect.succeed(failed)
        : Effect.as(Handler.logUnexpected(model.name, unexpected), failed)
    }),
  )
