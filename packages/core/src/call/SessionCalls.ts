/** Calls of a model in sessions, as effects. Session.ts describes them. */
import { Clock, Effect, Result, Stream } from "effect"
import { constVoid } from "effect/Function"
import type { InferenceError } from "../error/InferenceError.ts"
import type { CallError, Declared } from "../model/Declared.ts"
import type { Definition, Input } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import * as MonotonicTime from "../request/MonotonicTime.ts"
import type { Cancel, Response } from "../request/Request.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import { callableBy, callerOf, type CallerService } from "./Caller.ts"
import { toEffect } from "./EffectCall.ts"
import type { CallOptions } from "./Inference.ts"
import { SequenceCall } from "./SequenceCall.ts"
import type { Session, Sessions } from "./Session.ts"
import * as TypedCalls from "./TypedCalls.ts"

/** Time that the end of a session waits for the server. */
const closeTimeout = "5 seconds"

type Decode<A> = (response: Response) => Result.Result<A, InferenceError>

export const sessions = <I extends Fields, O extends Fields, P extends Declared>(
  definition: Definition<I, O, P>,
  model: RunningModel,
): Sessions<I, O, P> => {
  const calls = TypedCalls.make(definition, model)
  return {
    model,
    session: (options) =>
      Effect.map(
        Effect.acquireRelease(
          Effect.sync(() => new SequenceCall(model, options)),
          close,
        ),
        (sequence) => session(calls, model, sequence),
      ),
  }
}

/** Ends the sequence of a session; completes when the server has replied, or does not reply in time. */
export const close = (sequence: SequenceCall): Effect.Effect<void> =>
  Effect.asVoid(Effect.timeoutOption(sequence.close, closeTimeout))

type PlainCall<I extends Fields, P extends Declared, A> = (
  sample: Input<I>,
  options: CallOptions<P> | undefined,
  now: number,
  reply: TypedCalls.TypedReply<A, CallError<P>>,
  caller?: CallerService,
) => Cancel

/** The calls of one session with one response, as plain functions. */
export const plainCalls = <I extends Fields, O extends Fields, P extends Declared>(
  calls: TypedCalls.TypedCalls<I, O, P>,
  model: RunningModel,
  sequence: SequenceCall,
) => {
  const call =
    <A>(decode: Decode<A>, isEnd: boolean): PlainCall<I, P, A> =>
    (sample, options, now, reply, caller) => {
      const request = calls.samples.request(sample, options, now, caller)
      if (Result.isFailure(request)) {
        reply(Result.fail(calls.failure(request.failure)))
        return constVoid
      }
      return sequence.submit(callableBy(caller, model), request.success, isEnd, (outcome) =>
        reply(Result.isFailure(outcome) ? Result.fail(calls.failure(outcome.failure)) : decode(outcome.success)),
      )
    }
  const { outputs, answer } = calls.samples
  return {
    infer: call(outputs, false),
    end: call(outputs, true),
    answer: call(answer, false),
    endAnswer: call(answer, true),
  }
}

/** The calls of one session. */
export const session = <I extends Fields, O extends Fields, P extends Declared>(
  calls: TypedCalls.TypedCalls<I, O, P>,
  model: RunningModel,
  sequence: SequenceCall,
): Session<I, O, P> => {
  const streamed = <A>(
    decode: Decode<A>,
    isEnd: boolean,
    sample: Input<I>,
    options: CallOptions<P> | undefined,
  ): Stream.Stream<A, CallError<P>> =>
    Stream.unwrap(
      Effect.withFiber((fiber) => {
        const caller = callerOf(fiber)
        const now = MonotonicTime.millis(fiber.getRef(Clock.Clock))
        return Effect.map(Effect.fromResult(calls.samples.request(sample, options, now, caller)), (request) =>
          sequence.stream(callableBy(caller, model), request, isEnd, { decode, failure: calls.failure }),
        )
      }),
    )
  const { infer, end, answer, endAnswer } = plainCalls(calls, model, sequence)
  return {
    id: sequence.id,
    infer: (sample, ...[options]) => toEffect((now, caller, reply) => infer(sample, options, now, reply, caller)),
    stream: (sample, ...[options]) => streamed(calls.samples.outputs, false, sample, options),
    end: (sample, ...[options]) => toEffect((now, caller, reply) => end(sample, options, now, reply, caller)),
    endStream: (sample, ...[options]) => streamed(calls.samples.outputs, true, sample, options),
    withParameters: {
      infer: (sample, ...[options]) => toEffect((now, caller, reply) => answer(sample, options, now, reply, caller)),
      stream: (sample, ...[options]) => streamed(calls.samples.answer, false, sample, options),
      end: (sample, ...[options]) => toEffect((now, caller, reply) => endAnswer(sample, options, now, reply, caller)),
      endStream: (sample, ...[options]) => streamed(calls.samples.answer, true, sample, options),
    },
  }
}
