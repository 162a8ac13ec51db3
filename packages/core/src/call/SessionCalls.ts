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
import type { CallArguments, CallOptions } from "./Inference.ts"
import { SequenceCall } from "./SequenceCall.ts"
import type { Session, Sessions } from "./Session.ts"
import * as TypedCalls from "./TypedCalls.ts"

/** Time that the end of a session waits for the server. */
const closeTimeout = "5 seconds"

export type Decode<A> = (response: Response) => Result.Result<A, InferenceError>

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

/** Makes the calls of one session with one response, as plain functions. `isEnd`: with the last sample. */
export const plainCalls =
  <I extends Fields, O extends Fields, P extends Declared>(
    calls: TypedCalls.TypedCalls<I, O, P>,
    model: RunningModel,
    sequence: SequenceCall,
  ) =>
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

/** The calls of one session. */
export const session = <I extends Fields, O extends Fields, P extends Declared>(
  calls: TypedCalls.TypedCalls<I, O, P>,
  model: RunningModel,
  sequence: SequenceCall,
): Session<I, O, P> => {
  const plain = plainCalls(calls, model, sequence)
  const decodedBy = <A>(decode: Decode<A>) => {
    const single = (isEnd: boolean) => {
      const call = plain(decode, isEnd)
      return (sample: Input<I>, ...[options]: CallArguments<P>): Effect.Effect<A, CallError<P>> =>
        toEffect((now, caller, reply) => call(sample, options, now, reply, caller))
    }
    const streamed =
      (isEnd: boolean) =>
      (sample: Input<I>, ...[options]: CallArguments<P>): Stream.Stream<A, CallError<P>> =>
        Stream.unwrap(
          Effect.withFiber((fiber) => {
            const caller = callerOf(fiber)
            const now = MonotonicTime.millis(fiber.getRef(Clock.Clock))
            return Effect.map(Effect.fromResult(calls.samples.request(sample, options, now, caller)), (request) =>
              sequence.stream(callableBy(caller, model), request, isEnd, { decode, failure: calls.failure }),
            )
          }),
        )
    return { infer: single(false), stream: streamed(false), end: single(true), endStream: streamed(true) }
  }
  const { outputs, answer } = calls.samples
  return { id: sequence.id, ...decodedBy(outputs), withParameters: decodedBy(answer) }
}
