/**
 * A decoupled model from a function of one sample: it answers with a Stream, of any number of responses, at their own pace.
 * Handlers that answer once are EachHandler.ts's and BatchHandler.ts's.
 */
import { Cause, type Context, Effect, Exit, type Layer, Result, Stream } from "effect"
import type { ModelClass, Sample } from "./Definition.ts"
import { type InferenceError, InvalidRequest } from "./Errors.ts"
import type { Fields } from "./Field.ts"
import * as Handler from "./Handler.ts"
import { errorPrefix, noParameters, type Parameters, type Request, type Response } from "./Inference.ts"
import { fromEffect } from "./Instance.ts"
import { withoutBatch } from "./BatchedTensors.ts"
import * as RequestContext from "./RequestContext.ts"
import * as SampleCodec from "./SampleCodec.ts"

/** One decoded sample in, any number out. */
export type StreamHandler<I extends Fields, O extends Fields, E, R> = (
  sample: Sample<I>,
) => Stream.Stream<Sample<O>, E, R>

/**
 * A model from a function that answers one sample with a stream. A reader that is slow slows it, and one that leaves
 * interrupts it. An instance answers as many requests at the same time as the model has rows in a batch (one where it does
 * not batch); a request has one row.
 *
 * A handler has its RequestContext; a parameter that it sets is one of the responses from there on.
 *
 * `make` is the handler, or an Effect that builds one, once per instance, in a scope that closes when the model unloads.
 */
export const stream = <Self, N extends string, I extends Fields, O extends Fields, E, R, EMake = never, RMake = never>(
  model: ModelClass<Self, N, I, O>,
  make: Effect.Effect<StreamHandler<I, O, E, R>, EMake, RMake> | StreamHandler<I, O, E, R>,
  options?: Handler.HandlerOptions,
): Layer.Layer<Self, EMake, Handler.Needs<RMake, Exclude<R, RequestContext.RequestContext>>> => {
  const { name, signature, inputs, outputs, maxBatchSize } = model.definition
  const inputCodec = SampleCodec.make(inputs, signature.inputs)
  const outputCodec = SampleCodec.make(outputs, signature.outputs)
  const batching = maxBatchSize > 0

  const emit = (request: Request, sample: Sample<O>, parameters: Parameters): Effect.Effect<void, InferenceError> => {
    const encoded = outputCodec.encode(sample, batching)
    if (Result.isFailure(encoded)) return Effect.fail(Handler.wrongOutput(name, encoded.failure))
    return request.emit?.({ outputs: Handler.present(encoded.success), parameters }) ?? Effect.void
  }

  const answer = (handler: StreamHandler<I, O, E, R>, request: Request) => {
    const { context, responseParameters } = RequestContext.make(request)
    return Effect.suspend(() => {
      if (request.rows > 1) return Effect.fail(tooManyRows(name, request))
      const tensors = batching ? request.inputs.map((tensor) => tensor && withoutBatch(tensor)) : request.inputs
      const decoded = inputCodec.decode(tensors)
      if (Result.isFailure(decoded)) return Effect.fail(Handler.wrongInput(name, request, decoded.failure))
      // The codec has put exactly the fields of I into it, each decoded by its own Schema.
      return handler(decoded.success as Sample<I>).pipe(
        Stream.mapError((error) => Handler.failed(name, error)),
        Stream.runForEach((sample) => emit(request, sample, responseParameters())),
        Effect.as(last),
      )
    }).pipe(Effect.provideService(RequestContext.RequestContext, context))
  }

  return Handler.instances(
    model,
    make,
    options,
    (handler, context: Context.Context<Exclude<R, RequestContext.RequestContext>>) =>
      fromEffect(context, (batch) =>
        Effect.forEach(batch.requests, (request) => outcome(name, answer(handler, request))).pipe(
          Effect.map(Handler.execution),
        ),
      ),
    { decoupled: true, concurrency: Math.max(1, maxBatchSize) },
  )
}

/** Says that there are no more. */
const last: Response = { outputs: [], parameters: noParameters }

const tooManyRows = (model: string, request: Request) => {
  const text = `inference request batch-size must be <= 1 for '${model}', whose responses are to one row each`
  return new InvalidRequest({ message: `${errorPrefix(request)}${text}, got ${request.rows}` })
}

/** A request's own outcome, so that the others of its batch go on. Defects are logged here and stay here. */
const outcome = <R>(model: string, answer: Effect.Effect<Response, InferenceError, R>) =>
  Effect.exit(answer).pipe(
    Effect.flatMap((exit): Effect.Effect<Result.Result<Response, InferenceError>> => {
      if (Exit.isSuccess(exit)) return Effect.succeed(Result.succeed(exit.value))
      const failure = Cause.findError(exit.cause)
      if (Result.isSuccess(failure)) return Effect.succeed(Result.fail(failure.success))
      return Effect.as(Handler.logDefect(model, exit.cause), Result.fail(Handler.defect(model)))
    }),
  )
