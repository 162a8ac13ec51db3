/**
 * The typed face of a running model as plain calls: samples and batches in, a reply with samples and batches. Provide.ts makes
 * effects of them, and promise clients promises: a call is what a request costs, and neither needs a fiber of its own.
 */
import { constVoid } from "effect/Function"
import { Duration, Result } from "effect"
import * as ChunkedCall from "./ChunkedCall.ts"
import { defaultConcurrentChunks } from "./ChunkedCall.ts"
import { askedBy, bounded, type CallerService } from "./Caller.ts"
import { collect, named, withBatch, withoutBatch } from "../model/BatchedTensors.ts"
import type { Batched, Definition, Input, InputBatch, Sample } from "../model/Definition.ts"
import type { Answer, BatchCallOptions, CallOptions } from "./Inference.ts"
import { ExecutionFailed, InvalidRequest, type InferenceError } from "../error/InferenceError.ts"
import type { Fields } from "../model/Field.ts"
import { type Cancel, noParameters, type Parameters, type Request, type Response } from "../request/Request.ts"
import { wrongParameter } from "../model/ParameterFields.ts"
import * as ParameterFields from "../model/ParameterFields.ts"
import type { CallError, Declared, Told } from "../model/Declared.ts"
import * as QueuedCall from "../model/QueuedCall.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import { ask, type CallableModel } from "../running/CallableModel.ts"
import * as SampleCodec from "../model/SampleCodec.ts"
import { symbolMismatch } from "../tensor/SymbolMismatch.ts"

/** Called once, perhaps before the call returns, and not after it was taken back. */
export type TypedReply<A, E> = (outcome: Result.Result<A, E>) => void

/**
 * `now` is what the model's clock says, in milliseconds: a call's timeout begins there. `caller` is that of the code
 * which calls, undefined where it answers nothing itself.
 */
export interface TypedCalls<I extends Fields, O extends Fields, P extends Declared = undefined> {
  readonly infer: SampleCall<I, P, Sample<O>>
  readonly inferBatch: BatchCall<I, P, Batched<O>>
  /** The same with the parameters of the responses. */
  readonly withParameters: {
    readonly infer: SampleCall<I, P, Answer<Sample<O>, P>>
    readonly inferBatch: BatchCall<I, P, Answer<Batched<O>, P>>
  }
  /** What `infer` asks. */
  readonly request: (
    sample: Input<I>,
    options: CallOptions<P> | undefined,
    now: number,
    caller?: CallerService,
  ) => Result.Result<Request, InferenceError>
  /** What it replies with. */
  readonly sample: (response: Response) => Result.Result<Sample<O>, InferenceError>
  readonly answer: (response: Response) => Result.Result<Answer<Sample<O>, P>, InferenceError>
  /** A failure as the callers of this model have it. */
  readonly failure: (failure: InferenceError) => CallError<P>
}

type SampleCall<I extends Fields, P extends Declared, A> = (
  sample: Input<I>,
  options: CallOptions<P> | undefined,
  now: number,
  reply: TypedReply<A, CallError<P>>,
  caller?: CallerService,
) => Cancel

type BatchCall<I extends Fields, P extends Declared, A> = (
  batch: InputBatch<I>,
  options: BatchCallOptions<P> | undefined,
  now: number,
  reply: TypedReply<A, CallError<P>>,
  caller?: CallerService,
) => Cancel

type Read<A> = (response: Response) => Result.Result<A, InferenceError>

export const make = <I extends Fields, O extends Fields, P extends Declared>(
  definition: Definition<I, O, P>,
  model: RunningModel,
): TypedCalls<I, O, P> => {
  const { name, signature, maxBatchSize } = definition
  const inputs = SampleCodec.make(definition.inputs, signature.inputs)
  const outputs = SampleCodec.make(definition.outputs, signature.outputs)
  const declared = definition.parameters === undefined ? undefined : ParameterFields.make(definition.parameters)
  const told = definition.responseParameters && ParameterFields.make(definition.responseParameters)
  const batching = maxBatchSize > 0

  const wrongInput = ({ field, message }: SampleCodec.SampleError) =>
    Result.fail(new InvalidRequest({ message: `input '${field}' of model '${name}': ${message}` }))

  const asked = (
    tensors: Request["inputs"],
    rows: number,
    options: CallOptions<P> | undefined,
    now: number,
    caller: CallerService | undefined,
  ): Result.Result<Request, InferenceError> => {
    const disagreement = symbolMismatch(name, signature.inputs, tensors)
    if (disagreement !== undefined) return Result.fail(new InvalidRequest({ message: disagreement }))
    const { id = "", timeout, parameters: given = noParameters } = options ?? {}
    const own = // Where none are declared, they are what came.
      declared === undefined ? Result.succeed(given as Parameters) : declared.encode(given)
    const parameters = options === undefined ? own : Result.flatMap(own, (own) => QueuedCall.parameters(own, options))
    if (Result.isFailure(parameters)) return Result.fail(wrongParameter(name, { id }, parameters.failure))
    const request: Request = {
      id,
      inputs: tensors,
      rows,
      parameters: parameters.success,
      deadline: timeout === undefined ? undefined : now + Duration.toMillis(timeout),
    }
    return Result.succeed(bounded(request, caller))
  }

  const request: TypedCalls<I, O, P>["request"] = (sample, options, now, caller) => {
    const encoded = inputs.encode(sample, batching)
    return Result.isFailure(encoded) ? wrongInput(encoded.failure) : asked(encoded.success, 1, options, now, caller)
  }

  const batchRequest = (
    batch: InputBatch<I>,
    options: BatchCallOptions<P> | undefined,
    now: number,
    caller: CallerService | undefined,
  ): Result.Result<Request, InferenceError> => {
    const collected = collect(signature.inputs, batch)
    if (Result.isFailure(collected)) return wrongInput(collected.failure)
    const { tensors, rows } = collected.success
    const most = batching ? maxBatchSize : 1
    const concurrency = options?.concurrentChunks ?? defaultConcurrentChunks
    if (!Number.isSafeInteger(concurrency) || concurrency < 0) {
      const message = `concurrentChunks must be an integer of at least 0, but ${concurrency} was given`
      return Result.fail(new InvalidRequest({ message }))
    }
    if (rows > most && (!batching || concurrency === 0)) {
      const message = `inference request batch-size must be <= ${most} for '${name}', got ${rows}`
      return Result.fail(new InvalidRequest({ message }))
    }
    return asked(
      batching ? tensors : tensors.map((tensor) => tensor && withoutBatch(tensor)),
      rows,
      options,
      now,
      caller,
    )
  }

  const sample: TypedCalls<I, O, P>["sample"] = (response) => {
    const decoded = outputs.decode(batching ? response.outputs.map(withoutBatch) : response.outputs)
    if (Result.isFailure(decoded)) {
      const { field, message } = decoded.failure
      return Result.fail(new ExecutionFailed({ message: `output '${field}' of model '${name}': ${message}` }))
    }
    // The codec has put exactly the fields of O into it, each decoded by its own Schema.
    return Result.succeed(decoded.success as Sample<O>)
  }

  const batchOf = (response: Response): Result.Result<Batched<O>, InferenceError> =>
    Result.succeed(
      named(signature.outputs, batching ? response.outputs : response.outputs.map(withBatch)) as Batched<O>,
    )

  /** The same for a request of any number of rows, whose chunks have one time together. */
  const inChunks = (asked: CallableModel, options: BatchCallOptions<P> | undefined, now: number): CallableModel => {
    const concurrency = options?.concurrentChunks ?? defaultConcurrentChunks
    const how = { model: name, outputs: signature.outputs, rows: maxBatchSize, concurrency }
    const {
      calls: { timeout },
    } = model
    return {
      decoupled: false,
      emits: false,
      submit: (request, reply) => {
        const deadline = request.deadline ?? (timeout === undefined ? undefined : now + timeout)
        return ChunkedCall.submit(how, asked, { ...request, deadline }, reply)
      },
    }
  }

  const withParameters =
    <A>(read: Read<A>): Read<Answer<A, P>> =>
    (response) =>
      Result.flatMap(read(response), (outputs) => {
        const decoded = told === undefined ? Result.succeed(response.parameters) : told.decode(response.parameters)
        if (Result.isFailure(decoded)) {
          const { field, message } = decoded.failure
          const text = `response parameter '${field}' of model '${name}': ${message}`
          return Result.fail(new ExecutionFailed({ message: text }))
        }
        // Decoded by the Schemas of P.
        return Result.succeed({ outputs, parameters: decoded.success as Told<P> })
      })

  // What is no failure of `Errors` is one of the classes of P.
  const failure = (failed: InferenceError) => (definition.errors?.decode(failed) ?? failed) as CallError<P>

  const calling = <A>(
    model: CallableModel,
    request: Result.Result<Request, InferenceError>,
    read: Read<A>,
    reply: TypedReply<A, CallError<P>>,
  ): Cancel => {
    if (Result.isFailure(request)) {
      reply(Result.fail(request.failure))
      return constVoid
    }
    return ask(model, request.success, (outcome) =>
      reply(Result.isFailure(outcome) ? Result.fail(failure(outcome.failure)) : read(outcome.success)),
    )
  }

  const sampleCall =
    <A>(read: Read<A>): SampleCall<I, P, A> =>
    (one, options, now, reply, caller) =>
      calling(askedBy(caller, model), request(one, options, now, caller), read, reply)

  const batchCall =
    <A>(read: Read<A>): BatchCall<I, P, A> =>
    (batch, options, now, reply, caller) => {
      const request = batchRequest(batch, options, now, caller)
      const asked = askedBy(caller, model)
      const isLarge = Result.isSuccess(request) && request.success.rows > Math.max(1, maxBatchSize)
      return calling(isLarge ? inChunks(asked, options, now) : asked, request, read, reply)
    }

  const answer = withParameters(sample)
  return {
    request,
    sample,
    answer,
    failure,
    infer: sampleCall(sample),
    inferBatch: batchCall(batchOf),
    withParameters: { infer: sampleCall(answer), inferBatch: batchCall(withParameters(batchOf)) },
  }
}
