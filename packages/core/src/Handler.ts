/**
 * User code as an instance: a handler for single samples (`each`) or for whole batches (`batch`), as a function or as an
 * Effect that builds one in a scope. What a handler returns is checked against the signature, never cast.
 */
import { Cause, Effect, Exit, type Layer, Result, type Scope } from "effect"
import * as Batch from "./Batch.ts"
import { type Batched, type ModelClass, requireInteger, type Sample } from "./Definition.ts"
import { ExecutionFailed, type InferenceError, InvalidRequest, isInferenceError } from "./Errors.ts"
import type { Fields } from "./Field.ts"
import { errorPrefix, type Request, type Response } from "./Inference.ts"
import { type Execution, fromEffect, type Instance } from "./Instance.ts"
import { collect, fromInstances, named, withBatch, withoutBatch } from "./Provide.ts"
import * as RequestContext from "./RequestContext.ts"
import * as SampleCodec from "./SampleCodec.ts"
import type { TensorSpec } from "./TensorSpec.ts"
import { concat, sameRow, split, type TypedTensor } from "./TypedTensor.ts"

/** One decoded sample in, one out. May need RequestContext, which is there for the time of the request. */
export type EachHandler<I extends Fields, O extends Fields, E, R> = (
  sample: Sample<I>,
) => Effect.Effect<Sample<O>, E, R>

/** The whole batch in and out, one tensor per input and output, along axis 0. */
export type BatchHandler<I extends Fields, O extends Fields, E, R> = (
  batch: Batched<I>,
) => Effect.Effect<Batched<O>, E, R>

export interface HandlerOptions {
  /** Batches that run at the same time, each in an instance that builds its own handler. At least 1, the default. */
  readonly instances?: number
}

/** What the layer still needs: everything of building and of handling, but the scope that it brings. */
export type Needs<RMake, RHandle> = Exclude<RMake, Scope.Scope> | RHandle

/**
 * A model from a function of one sample. The samples of a batch run concurrently; a failure is that of its request, whose
 * own rows are answered or fail together, and of no other.
 *
 * `make` is the handler, or an Effect that builds one, once per instance, in a scope that closes when the model unloads.
 */
export const each = <Self, N extends string, I extends Fields, O extends Fields, E, R, EMake = never, RMake = never>(
  model: ModelClass<Self, N, I, O>,
  make: Effect.Effect<EachHandler<I, O, E, R>, EMake, RMake> | EachHandler<I, O, E, R>,
  options?: HandlerOptions,
): Layer.Layer<Self, EMake, Needs<RMake, Exclude<R, RequestContext.RequestContext>>> => {
  const { definition } = model
  const { name, signature } = definition
  const inputCodec = SampleCodec.make(definition.inputs, signature.inputs)
  const outputCodec = SampleCodec.make(definition.outputs, signature.outputs)
  const batching = definition.maxBatchSize > 0

  const answer = (handler: EachHandler<I, O, E, R>, request: Request, tensors: Request["inputs"]) =>
    Effect.suspend(() => {
      const decoded = inputCodec.decode(tensors)
      if (Result.isFailure(decoded)) return Effect.fail(wrongInput(name, request, decoded.failure))
      // The codec has put exactly the fields of I into it, each decoded by its own Schema.
      return handler(decoded.success as Sample<I>).pipe(Effect.mapError((error) => failed(name, error)))
    }).pipe(
      Effect.flatMap((sample) => {
        const encoded = outputCodec.encode(sample, batching)
        if (Result.isSuccess(encoded)) return Effect.succeed(present(encoded.success))
        return Effect.fail(wrongOutput(name, encoded.failure))
      }),
    )

  const answerRows = (handler: EachHandler<I, O, E, R>, request: Request) => {
    if (!batching) return answer(handler, request, request.inputs)
    return Effect.forEach(samples(request), (tensors) => answer(handler, request, tensors), {
      concurrency: "unbounded",
    }).pipe(
      Effect.flatMap((rows) => {
        const uneven = unevenOutput(signature.outputs, rows)
        return uneven === undefined ? Effect.succeed(joinRows(rows)) : Effect.fail(wrongOutput(name, uneven))
      }),
    )
  }

  const answerRequest = (handler: EachHandler<I, O, E, R>, request: Request) => {
    const { context, responseParameters } = RequestContext.make(request)
    return answerRows(handler, request).pipe(
      Effect.provideService(RequestContext.RequestContext, context),
      Effect.map((outputs): Response => ({ outputs, parameters: responseParameters() })),
    )
  }

  return instances(
    model,
    make,
    options,
    (handler) => (batch) =>
      Effect.forEach(batch.requests, (request) => outcome(name, answerRequest(handler, request)), {
        concurrency: "unbounded",
      }).pipe(Effect.map(execution)),
  )
}

/**
 * A model from a function of a whole batch: one tensor per input, all rows along axis 0. A failure is the failure of
 * every request of the batch. Called with one row where the model does not batch.
 */
export const batch = <Self, N extends string, I extends Fields, O extends Fields, E, R, EMake = never, RMake = never>(
  model: ModelClass<Self, N, I, O>,
  make: Effect.Effect<BatchHandler<I, O, E, R>, EMake, RMake> | BatchHandler<I, O, E, R>,
  options?: HandlerOptions,
): Layer.Layer<Self, EMake, Needs<RMake, R>> => {
  const { name, signature, maxBatchSize } = model.definition
  const batching = maxBatchSize > 0
  return instances(
    model,
    make,
    options,
    (handler) => (requests) =>
      Effect.suspend(() => {
        const tensors = Batch.inputs(requests)
        const batched = batching ? tensors : tensors.map((tensor) => tensor && withBatch(tensor))
        // Validation has matched every tensor to its spec, so the record has the shape of Batched<I>.
        return handler(named(signature.inputs, batched) as Batched<I>)
      }).pipe(
        Effect.mapError((error) => failed(name, error)),
        Effect.flatMap((outputs) => {
          const collected = collect(signature.outputs, outputs)
          if (Result.isFailure(collected)) return Effect.fail(wrongOutput(name, collected.failure))
          const { tensors, rows } = collected.success
          if (rows !== requests.rows) {
            const message = `model '${name}' answered ${rows} rows to a batch of ${requests.rows}`
            return Effect.fail(new ExecutionFailed({ message }))
          }
          const answers = present(batching ? tensors : tensors.map((tensor) => tensor && withoutBatch(tensor)))
          return Effect.succeed(execution(Batch.split(requests, answers).map(Result.succeed)))
        }),
      ),
  )
}

/** The instances of a handler: each builds its own, and runs it with the services of the layer, `concurrency` at once. */
export const instances = <Self, N extends string, I extends Fields, O extends Fields, H, EMake, RMake, R>(
  model: ModelClass<Self, N, I, O>,
  make: Effect.Effect<H, EMake, RMake> | H,
  { instances: count = 1 }: HandlerOptions = {},
  execute: (handler: H) => (batch: Batch.Batch) => Effect.Effect<Execution, InferenceError, R>,
  { decoupled = false, concurrency = 1 }: { readonly decoupled?: boolean; readonly concurrency?: number } = {},
): Layer.Layer<Self, EMake, Needs<RMake, R>> => {
  const { name } = model.definition
  requireInteger(name, "instances", count, 1)
  const build = Effect.gen(function* () {
    const context = yield* Effect.context<R>()
    const built: Array<Instance> = []
    for (let index = 0; index < count; index++) {
      const handler = Effect.isEffect(make) ? yield* make : make
      built.push({
        name: `${name}_0_${index}`,
        concurrency,
        status: () => "available",
        onStatusChange: () => {},
        execute: fromEffect(context, execute(handler)),
      })
    }
    return built
  })
  return fromInstances(model, { platform: "nereid", decoupled, instances: build })
}

/** A request's own outcome, so that the other requests of its batch go on. Defects are logged here and stay here. */
export const outcome = <R>(model: string, answer: Effect.Effect<Response, InferenceError, R>) =>
  Effect.exit(answer).pipe(
    Effect.flatMap((exit): Effect.Effect<Result.Result<Response, InferenceError>> => {
      if (Exit.isSuccess(exit)) return Effect.succeed(Result.succeed(exit.value))
      const failure = Cause.findError(exit.cause)
      if (Result.isSuccess(failure)) return Effect.succeed(Result.fail(failure.success))
      const message = `Failed to execute the request(s) for model '${model}'; its log says why`
      return Effect.as(
        Effect.logError(`The handler of model '${model}' failed`, exit.cause),
        Result.fail(new ExecutionFailed({ message })),
      )
    }),
  )

/** A handler's failure as the caller sees it: those of this protocol keep their tag, also through a chain of models. */
export const failed = (model: string, error: unknown): InferenceError => {
  if (isInferenceError(error)) return error
  const text = error instanceof Error ? error.message : String(error)
  return new ExecutionFailed({ message: `Failed to execute the request(s) for model '${model}': ${text}` })
}

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

/** The inputs of each row of a request, without the batch dimension. */
const samples = ({ inputs, rows }: Request): ReadonlyArray<Request["inputs"]> => {
  const ones = Array.from({ length: rows }, () => 1)
  const columns = inputs.map((tensor) => tensor && split(tensor, ones).map(withoutBatch))
  return ones.map((_, row) => columns.map((column) => column?.[row]))
}

/** The rows of one request are one tensor, so what a dynamic dim is in one row it must be in all. */
const unevenOutput = (
  specs: ReadonlyArray<TensorSpec>,
  rows: ReadonlyArray<ReadonlyArray<TypedTensor>>,
): SampleCodec.SampleError | undefined => {
  const [first = []] = rows
  for (const [index, spec] of specs.entries()) {
    const shape = first[index]?.shape ?? []
    const other = rows.find((outputs) => !sameRow(outputs[index]?.shape ?? [], shape))?.[index]?.shape
    if (other === undefined) continue
    const message = `the rows of one request have different shapes, [${shape.slice(1)}] and [${other.slice(1)}]`
    return { field: spec.name, message }
  }
  return undefined
}

/** The outputs of rows, each a batch of one, as one batch. */
const joinRows = (rows: ReadonlyArray<ReadonlyArray<TypedTensor>>): ReadonlyArray<TypedTensor> => {
  const [first = [], ...rest] = rows
  return first.map((tensor, index) => concat([tensor, ...rest.flatMap((outputs) => outputs[index] ?? [])]))
}
