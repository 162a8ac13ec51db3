/**
 * Typed calls of a running model as plain functions: samples and batches in, a reply with samples and batches.
 * EffectCalls.ts makes effects of them, and promise clients make promises, so that a call costs no fiber.
 */
import { constVoid } from "effect/Function"
import { Result } from "effect"
import type { InferenceError } from "../error/InferenceError.ts"
import type { CallError, Declared } from "../model/Declared.ts"
import type { Batched, Definition, Input, InputBatch, Sample } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import type { Cancel, Request } from "../request/Request.ts"
import { type CallableModel, submitSingle } from "../running/CallableModel.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import { callableBy, type CallerService } from "./Caller.ts"
import * as ChunkedCall from "./ChunkedCall.ts"
import { defaultConcurrentChunks } from "./ChunkedCall.ts"
import type { Answer, BatchCallOptions, CallOptions } from "./Inference.ts"
import * as TypedRequests from "./TypedRequests.ts"
import * as TypedResponses from "./TypedResponses.ts"

/** Called once, possibly before the call returns, and never after the call was cancelled. */
export type TypedReply<A, E> = (outcome: Result.Result<A, E>) => void

/** `now` and `caller` are those of TypedRequests.ts. */
type TypedCall<A, Options, B, P extends Declared> = (
  input: A,
  options: Options | undefined,
  now: number,
  reply: TypedReply<B, CallError<P>>,
  caller?: CallerService,
) => Cancel

type SampleCall<I extends Fields, P extends Declared, A> = TypedCall<Input<I>, CallOptions<P>, A, P>

type BatchCall<I extends Fields, P extends Declared, A> = TypedCall<InputBatch<I>, BatchCallOptions<P>, A, P>

/** Encodes the input of a call as one request, and decodes each of its responses. */
export interface StreamCodec<A, B, P extends Declared> {
  readonly request: (
    input: A,
    options: CallOptions<P> | undefined,
    now: number,
    caller?: CallerService,
  ) => Result.Result<Request, InferenceError>
  readonly outputs: TypedResponses.Decode<B>
  readonly answer: TypedResponses.Decode<Answer<B, P>>
}

export interface TypedCalls<I extends Fields, O extends Fields, P extends Declared = undefined> {
  readonly infer: SampleCall<I, P, Sample<O>>
  readonly inferBatch: BatchCall<I, P, Batched<O>>
  /** The same with the parameters of the responses. */
  readonly withParameters: {
    readonly infer: SampleCall<I, P, Answer<Sample<O>, P>>
    readonly inferBatch: BatchCall<I, P, Answer<Batched<O>, P>>
  }
  /** Codecs of calls that stream: of one sample, and of several; `answer` adds the parameters of the response. */
  readonly samples: StreamCodec<Input<I>, Sample<O>, P>
  readonly batches: StreamCodec<InputBatch<I>, Batched<O>, P>
  /** A failure as callers of this model get it. */
  readonly failure: (failure: InferenceError) => CallError<P>
}

export const make = <I extends Fields, O extends Fields, P extends Declared>(
  definition: Definition<I, O, P>,
  model: RunningModel,
): TypedCalls<I, O, P> => {
  const { maxBatchSize } = definition
  const requests = TypedRequests.make(definition)
  const responses = TypedResponses.make(definition)

  const call = <A>(
    callable: CallableModel,
    request: Result.Result<Request, InferenceError>,
    decode: TypedResponses.Decode<A>,
    reply: TypedReply<A, CallError<P>>,
  ): Cancel => {
    if (Result.isFailure(request)) {
      reply(Result.fail(request.failure))
      return constVoid
    }
    return submitSingle(callable, request.success, (outcome) =>
      reply(Result.isFailure(outcome) ? Result.fail(responses.failure(outcome.failure)) : decode(outcome.success)),
    )
  }

  const sampleCall =
    <A>(decode: TypedResponses.Decode<A>): SampleCall<I, P, A> =>
    (sample, options, now, reply, caller) =>
      call(callableBy(caller, model), requests.sample(sample, options, now, caller), decode, reply)

  const batchCall =
    <A>(decode: TypedResponses.Decode<A>): BatchCall<I, P, A> =>
    (batch, options, now, reply, caller) => {
      const request = requests.batch(batch, options, now, caller)
      const callable = callableBy(caller, model)
      const isLarge = Result.isSuccess(request) && request.success.rows > Math.max(1, maxBatchSize)
      return call(isLarge ? inChunks(callable, options, now) : callable, request, decode, reply)
    }

  /** The chunks of one batch share its deadline. */
  const inChunks = (callable: CallableModel, options: BatchCallOptions<P> | undefined, now: number): CallableModel => {
    const { name, signature } = definition
    const concurrency = options?.concurrentChunks ?? defaultConcurrentChunks
    const { timeout } = model.calls
    return ChunkedCall.make(
      { model: name, outputs: signature.outputs, rows: maxBatchSize, concurrency },
      callable,
      timeout === undefined ? undefined : now + timeout,
    )
  }

  const { sample, batch, withParameters, failure } = responses
  const [answer, batchAnswer] = [withParameters(sample), withParameters(batch)]
  const oneRequest = (options: CallOptions<P> | undefined): BatchCallOptions<P> =>
    ({ ...options, concurrentChunks: 0 }) as BatchCallOptions<P>
  return {
    samples: { request: requests.sample, outputs: sample, answer },
    batches: {
      // One stream is one request, which is never split.
      request: (batch, options, now, caller) => requests.batch(batch, oneRequest(options), now, caller),
      outputs: batch,
      answer: batchAnswer,
    },
    failure,
    infer: sampleCall(sample),
    inferBatch: batchCall(batch),
    withParameters: { infer: sampleCall(answer), inferBatch: batchCall(batchAnswer) },
  }
}
