/**
 * A model from a function of the requests of a batch, for handlers that answer each request separately: by its
 * parameters, or with an error for only that request. BatchHandler.ts has functions of all rows at once.
 */
import { type Context, type Layer, Result } from "effect"
import * as BatchCall from "./BatchCall.ts"
import type { CheckedHandler, InForm, Make, RequirementsOf, ValueOf } from "./CheckedHandler.ts"
import type { Batched } from "../model/Definition.ts"
import type { ModelClass } from "../call/ModelClass.ts"
import { ExecutionFailed, type InferenceError } from "../error/InferenceError.ts"
import type { Fields } from "../model/Field.ts"
import type { HandledBatch } from "./HandledBatch.ts"
import type { FirstMistake, Sequenced } from "./HandledSequence.ts"
import * as Handler from "./Handler.ts"
import type { OutputMistake } from "./OutputMistake.ts"
import type { GivenOptions } from "../model/GivenOptions.ts"
import type { Response } from "../request/Request.ts"
import { collect, named, withBatch, withoutBatch } from "../model/BatchedTensors.ts"
import type { Declared, Failing } from "../model/Declared.ts"
import type { HandledRequest } from "./RequestContext.ts"
import * as UserCode from "./UserCode.ts"

/** One of the requests, with its tensors: its rows along axis 0; one row without batching. */
export interface ModelRequest<I extends Fields, P extends Declared = undefined> extends HandledRequest<P> {
  readonly inputs: Batched<I>
}

/**
 * Returns one Result per request, in order, as a value, a promise or an effect. Failures are those that effects have.
 */
export type RequestsHandler<I extends Fields, O extends Fields, E, R, P extends Declared = undefined> = (
  requests: ReadonlyArray<ModelRequest<I, P>>,
  context: Pick<HandledBatch, "signal">,
) => UserCode.HandlerResult<Results<O, P>, E, R>

type Results<O extends Fields, P extends Declared> = ReadonlyArray<Result.Result<Batched<O>, Failing<P>>>

type RequestsHandlerResult<O extends Fields, P extends Declared, E, R> = UserCode.HandlerResult<Results<O, P>, E, R>

/** The outputs of a list of Results. */
type Succeeded<A> =
  A extends ReadonlyArray<infer One> ? (One extends Result.Success<infer Value, infer _E> ? Value : never) : never

type CheckedRequestsHandler<
  N extends string,
  I extends Fields,
  O extends Fields,
  A,
  EMake,
  RMake,
  P extends Declared,
> = CheckedHandler<
  [requests: ReadonlyArray<ModelRequest<I, P>>, context: Pick<HandledBatch, "signal">],
  A,
  RequestsHandlerResult<O, P, never, never>,
  RequestsHandlerResult<O, P, Failing<P>, unknown>,
  InForm<A, Results<O, P>, Failing<P>>,
  FirstMistake<
    Sequenced<N, P, A>,
    OutputMistake<N, Batched<O>, Succeeded<ValueOf<A>>, A, RequestsHandlerResult<O, P, Failing<P>, unknown>>
  >,
  EMake,
  RMake
>

/**
 * A model from a function of the requests of a batch, which returns one Result for each:
 *
 * ```ts
 * Model.requests(Scale, (requests) =>
 *   requests.map(({ inputs, parameters }) =>
 *     parameters["by"] === undefined
 *       ? Result.fail(new Errors.InvalidRequest({ message: "by how much?" }))
 *       : Result.succeed({ y: scaled(inputs.x, parameters["by"]) }),
 *   ),
 * )
 * ```
 *
 * A Result that is a failure, or that does not fit the signature, is the failure of that request alone; what the
 * function itself fails with, or another number of Results, that of all of them.
 */
export function requests<
  Self,
  N extends string,
  I extends Fields,
  O extends Fields,
  A = never,
  EMake = never,
  RMake = never,
  P extends Declared = undefined,
  const Options extends Handler.HandlerOptions<I> = {},
>(
  model: ModelClass<Self, N, I, O, P>,
  make: CheckedRequestsHandler<N, I, O, A, EMake, RMake, P>,
  options?: GivenOptions<Options, Handler.HandlerOptions<I>>,
): Layer.Layer<Self, EMake | Handler.Failure<Options>, Handler.Needs<RMake, RequirementsOf<A>, Options>>
export function requests<
  Self,
  N extends string,
  I extends Fields,
  O extends Fields,
  E extends Failing<P> = never,
  R = never,
  EMake = never,
  RMake = never,
  P extends Declared = undefined,
  const Options extends Handler.HandlerOptions<I> = {},
>(
  model: ModelClass<Self, N, I, O, P>,
  make: Make<RequestsHandler<I, O, E, R, P>, EMake, RMake>,
  options?: GivenOptions<Options, Handler.HandlerOptions<I>>,
): Layer.Layer<Self, EMake | Handler.Failure<Options>, Handler.Needs<RMake, R, Options>> {
  const { name, signature, maxBatchSize } = model.definition
  const batching = maxBatchSize > 0

  const outcome = (
    result: unknown,
    request: Pick<HandledRequest, "id" | "rows">,
  ): Result.Result<Pick<Response, "outputs">, InferenceError> => {
    if (!Result.isResult(result)) return Result.fail(noResult(name, request))
    if (Result.isFailure(result)) return Result.fail(Handler.requestError(model.definition, result.failure))
    const collected = collect(signature.outputs, result.success, request.rows)
    if (Result.isFailure(collected)) return Result.fail(Handler.wrongOutput(name, collected.failure))
    const { tensors } = collected.success
    const outputs = Handler.present(batching ? tensors : tensors.map((tensor) => tensor && withoutBatch(tensor)))
    return Result.succeed({ outputs })
  }

  return Handler.instances(
    model,
    make,
    options,
    (handler, context: Context.Context<R>, handling) =>
      BatchCall.execute<ReadonlyArray<Result.Result<Batched<O>, Failing<P>>>, E, R, P>(
        model.definition,
        context,
        handling,
        {
          begin: (batch, scope, fork) => {
            const handled = scope.requests.map((request, index): ModelRequest<I, P> => {
              const given = batch.requests[index]?.inputs ?? []
              const tensors = batching ? given : given.map((tensor) => tensor && withBatch(tensor))
              // Validation has matched every tensor to its spec, so the record has the shape of Batched<I>.
              return Object.assign(request, { inputs: named(signature.inputs, tensors) as Batched<I> })
            })
            return UserCode.call(handler, handled, scope, fork)
          },
          complete: (batch, scope, results: unknown) => {
            if (!Array.isArray(results) || results.length !== batch.requests.length) {
              return Result.fail(wrongLength(name, results, batch.requests.length))
            }
            const outcomes = scope.requests.map((request, index) =>
              Result.map(outcome(results[index], request), ({ outputs }): Response => {
                return { outputs, parameters: request.responseParameters() }
              }),
            )
            return Result.succeed(Handler.executionResult(outcomes))
          },
        },
      ),
    { granularity: "requests" },
  )
}

const noResult = (model: string, { id }: Pick<HandledRequest, "id">) => {
  const subject = id === "" ? "a request" : `request '${id}'`
  return new ExecutionFailed({
    message: `the handler of model '${model}' returned a value that is not a Result for ${subject}`,
  })
}

/** The failure of a batch for which code did not return one result for each request. */
export const wrongLength = (model: string, results: unknown, expected: number) => {
  const returned = Array.isArray(results) ? `${results.length} results` : "a value that is not an array"
  const message = `the handler of model '${model}' returned ${returned} for a batch of ${expected} requests`
  return new ExecutionFailed({ message })
}
