/**
 * User code as instances: what all ways to provide a model from code have in common. The ways themselves are
 * EachHandler.ts, BatchHandler.ts, RequestsHandler.ts and StreamHandler.ts.
 */
import { Cause, Clock, Context, Effect, type Layer, Result, type Scope } from "effect"
import { Asker } from "./Asker.ts"
import { requireInteger } from "./Batching.ts"
import type { Handling } from "./Caller.ts"
import type { ModelClass } from "./Definition.ts"
import { ExecutionFailed, InvalidRequest, type InferenceError, isInferenceError } from "./Errors.ts"
import type { Fields } from "./Field.ts"
import { errorPrefix, type Request } from "./Inference.ts"
import type { Execution, Instance } from "./Instance.ts"
import { type Failure, fromInstances, type Given, type InstancesOptions, type ServingOptions } from "./Provide.ts"
import type * as SampleCodec from "./SampleCodec.ts"
import type { TypedTensor } from "./TypedTensor.ts"
import * as UserCode from "./UserCode.ts"

export interface HandlerOptions<I extends Fields = Fields> extends ServingOptions<I> {
  /** Batches that run at the same time, each in an instance that builds its own handler. At least 1, the default. */
  readonly instances?: number
  /**
   * Whether tensors of a request may be used after its answer, as by a handler that compares a picture with the one
   * before. Where not, the memory of large ones is freed once the answer is sent, and they are empty from then on: less than
   * half of the cost for pictures of 600 KB. Default true.
   */
  readonly keepsInputs?: boolean
}

/** What the layer still needs: everything of building and of handling, but the scope that it brings. */
export type Needs<RMake, RHandle> = Exclude<RMake, Scope.Scope> | RHandle

/** The instances of a handler: each builds its own, and runs it with the services of the layer, `concurrency` at once. */
export const instances = <
  Self,
  N extends string,
  I extends Fields,
  O extends Fields,
  H,
  EMake,
  RMake,
  R,
  Options extends HandlerOptions<I>,
>(
  model: ModelClass<Self, N, I, O>,
  make: Effect.Effect<H, EMake, RMake> | H,
  options: Given<Options, HandlerOptions<I>> | undefined,
  execute: (handler: H, context: Context.Context<R>, handling: Handling) => Instance["execute"],
  {
    concurrency = 1,
    ...more
  }: { readonly concurrency?: number } & Pick<InstancesOptions<EMake, RMake>, "decoupled" | "joins"> = {},
): Layer.Layer<Self, EMake | Failure<Options>, Needs<RMake, R>> => {
  const { name } = model.definition
  const { instances: count = 1, keepsInputs }: HandlerOptions<I> = options ?? {}
  requireInteger(name, "instances", count, 1)
  const build = Effect.gen(function* () {
    const context = yield* Effect.context<R>()
    const asker = new Asker(name)
    const handling: Handling = { asker, clock: Context.get(context, Clock.Clock), context }
    const built: Array<Instance> = []
    for (let index = 0; index < count; index++) {
      built.push({
        name: `${name}_0_${index}`,
        concurrency,
        asker,
        status: () => "available",
        onStatusChange: () => {},
        execute: execute(Effect.isEffect(make) ? yield* make : make, context, handling),
      })
    }
    return built
  })
  return fromInstances<Self, N, I, O, EMake, RMake | R, Options>(
    model,
    { platform: "nereid", ...more, keepsInputs, instances: build },
    options,
  )
}

/** A handler's failure as the caller sees it: those of this protocol keep their tag, also through a chain of models. */
export const failed = (model: string, error: unknown): InferenceError => {
  const told = error instanceof UserCode.Thrown ? error.error : error
  if (isInferenceError(told)) return told
  const text = told instanceof Error ? told.message : String(told)
  return new ExecutionFailed({ message: `Failed to execute the request(s) for model '${model}': ${text}` })
}

/** What a caller sees of the end of a handler, and what of it belongs into the log. */
export const failure = (
  model: string,
  cause: Cause.Cause<unknown>,
): { readonly error: InferenceError; readonly unexpected: Cause.Cause<unknown> | undefined } => {
  const found = Cause.findError(cause)
  if (Result.isFailure(found)) return { error: defect(model), unexpected: cause }
  const error = failed(model, found.success)
  // Nothing says whether what was thrown was meant to be: it is logged, with its stack, unless it is one of Errors.
  const thrown = found.success instanceof UserCode.Thrown ? found.success.error : error
  return { error, unexpected: thrown === error ? undefined : Cause.fail(thrown) }
}

/** What a caller sees of a defect of a handler; the log has the rest. */
const defect = (model: string): InferenceError =>
  new ExecutionFailed({ message: `Failed to execute the request(s) for model '${model}'; its log says why` })

export const logUnexpected = (model: string, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Effect.logError(`The handler of model '${model}' failed`, cause)

export const wrongInput = (model: string, request: Request, { field, message }: SampleCodec.SampleError) =>
  new InvalidRequest({ message: `${errorPrefix(request)}input '${field}' of model '${model}': ${message}` })

export const wrongOutput = (model: string, { field, message }: SampleCodec.SampleError) =>
  new ExecutionFailed({ message: `output '${field}' of model '${model}': ${message}` })

export const execution = (outcomes: Execution["outcomes"]): Execution => ({
  outcomes,
  inputDuration: 0,
  outputDuration: 0,
})

/** Outputs are never optional, so none is missing where the codec has succeeded. */
export const present = (tensors: ReadonlyArray<TypedTensor | undefined>): ReadonlyArray<TypedTensor> =>
  tensors.filter((tensor) => tensor !== undefined)
