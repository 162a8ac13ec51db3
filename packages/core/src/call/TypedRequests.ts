/** Encodes the samples and batches of typed calls as requests of a model. TypedResponses.ts decodes the responses. */
import { Duration, Result } from "effect"
import { InvalidRequest, type InferenceError } from "../error/InferenceError.ts"
import { collect, withoutBatch } from "../model/BatchedTensors.ts"
import type { Declared } from "../model/Declared.ts"
import type { Definition, Input, InputBatch } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import { wrongParameter } from "../model/ParameterFields.ts"
import * as ParameterFields from "../model/ParameterFields.ts"
import * as QueuedCall from "../model/QueuedCall.ts"
import * as SampleCodec from "../model/SampleCodec.ts"
import { noParameters, type Parameters, type Request } from "../request/Request.ts"
import { symbolMismatch } from "../tensor/SymbolMismatch.ts"
import { type CallerService, inheritCaller } from "./Caller.ts"
import { defaultConcurrentChunks } from "./ChunkedCall.ts"
import type { BatchCallOptions, CallOptions } from "./Inference.ts"

/**
 * `now` is the time of the model's clock in milliseconds, at which the timeout of the call begins. `caller` is the
 * model code that calls; undefined for any other code.
 */
type Encode<A, Options> = (
  input: A,
  options: Options | undefined,
  now: number,
  caller?: CallerService,
) => Result.Result<Request, InferenceError>

export interface TypedRequests<I extends Fields, P extends Declared> {
  readonly sample: Encode<Input<I>, CallOptions<P>>
  /** The request may have more rows than the model takes at once; see ChunkedCall.ts. */
  readonly batch: Encode<InputBatch<I>, BatchCallOptions<P>>
}

export const make = <I extends Fields, O extends Fields, P extends Declared>(
  definition: Definition<I, O, P>,
): TypedRequests<I, P> => {
  const { name, signature, maxBatchSize } = definition
  const inputs = SampleCodec.make(definition.inputs, signature.inputs)
  const declared = definition.parameters === undefined ? undefined : ParameterFields.make(definition.parameters)
  const batching = maxBatchSize > 0

  const make = (
    tensors: Request["inputs"],
    rows: number,
    options: CallOptions<P> | undefined,
    now: number,
    caller: CallerService | undefined,
  ): Result.Result<Request, InferenceError> => {
    const disagreement = symbolMismatch(name, signature.inputs, tensors)
    if (disagreement !== undefined) return invalid(disagreement)
    const { id = "", timeout, parameters: given = noParameters } = options ?? {}
    // A model that declares no parameters takes any.
    const own = declared === undefined ? Result.succeed(given as Parameters) : declared.encode(given)
    const parameters = options === undefined ? own : Result.flatMap(own, (own) => QueuedCall.parameters(own, options))
    if (Result.isFailure(parameters)) return Result.fail(wrongParameter(name, { id }, parameters.failure))
    const request: Request = {
      id,
      inputs: tensors,
      rows,
      parameters: parameters.success,
      deadline: timeout === undefined ? undefined : now + Duration.toMillis(timeout),
    }
    return Result.succeed(inheritCaller(request, caller))
  }

  return {
    sample: (sample, options, now, caller) => {
      const encoded = inputs.encode(sample, batching)
      if (Result.isFailure(encoded)) return wrongInput(name, encoded.failure)
      return make(encoded.success, 1, options, now, caller)
    },
    batch: (batch, options, now, caller) => {
      const collected = collect(signature.inputs, batch)
      if (Result.isFailure(collected)) return wrongInput(name, collected.failure)
      const { tensors, rows } = collected.success
      const problem = rowsProblem(definition, rows, options?.concurrentChunks ?? defaultConcurrentChunks)
      if (problem !== undefined) return invalid(problem)
      const inputs = batching ? tensors : tensors.map((tensor) => tensor && withoutBatch(tensor))
      return make(inputs, rows, options, now, caller)
    },
  }
}

const rowsProblem = (
  { name, maxBatchSize }: Pick<Definition<Fields, Fields>, "name" | "maxBatchSize">,
  rows: number,
  concurrentChunks: number,
): string | undefined => {
  if (!Number.isSafeInteger(concurrentChunks) || concurrentChunks < 0) {
    return `concurrentChunks must be an integer of at least 0, but ${concurrentChunks} was given`
  }
  const takesChunks = maxBatchSize > 0 && concurrentChunks > 0
  const most = Math.max(1, maxBatchSize)
  if (takesChunks || rows <= most) return undefined
  return `inference request batch-size must be <= ${most} for '${name}', got ${rows}`
}

const invalid = (message: string) => Result.fail(new InvalidRequest({ message }))

const wrongInput = (model: string, { field, message }: SampleCodec.SampleError) =>
  invalid(`input '${field}' of model '${model}': ${message}`)
