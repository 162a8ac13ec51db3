/**
 * Typed calls of a running model as effects and streams, which `yield* M` returns. PromiseCall.ts has them as promises.
 */
import { Clock, Effect, type Result, Stream } from "effect"
import type { InferenceError } from "../error/InferenceError.ts"
import type { CallError, Declared } from "../model/Declared.ts"
import type { Definition, Input } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import type { Cancel, Response } from "../request/Request.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import { stream } from "../running/CallableModel.ts"
import { callableBy, callerOf, type CallerService } from "./Caller.ts"
import type { CallOptions, Inference } from "./Inference.ts"
import * as TypedCalls from "./TypedCalls.ts"
import * as MonotonicTime from "../request/MonotonicTime.ts"

/** The typed calls of a running model: samples and batches in, samples and batches out. */
export const inference = <I extends Fields, O extends Fields, P extends Declared>(
  definition: Definition<I, O, P>,
  model: RunningModel,
): Inference<I, O, P> => {
  const calls = TypedCalls.make(definition, model)
  const { withParameters } = calls
  return {
    model,
    infer: (sample, ...[options]) => toEffect((now, caller, reply) => calls.infer(sample, options, now, reply, caller)),
    inferBatch: (batch, ...[options]) =>
      toEffect((now, caller, reply) => calls.inferBatch(batch, options, now, reply, caller)),
    stream: (sample, ...[options]) => responses(calls, model, calls.sample, sample, options),
    withParameters: {
      infer: (sample, ...[options]) =>
        toEffect((now, caller, reply) => withParameters.infer(sample, options, now, reply, caller)),
      inferBatch: (batch, ...[options]) =>
        toEffect((now, caller, reply) => withParameters.inferBatch(batch, options, now, reply, caller)),
      stream: (sample, ...[options]) => responses(calls, model, calls.answer, sample, options),
    },
  }
}

/** Streams the responses of one sample, decoded by `decode`. */
export const responses = <I extends Fields, O extends Fields, P extends Declared, A>(
  calls: TypedCalls.TypedCalls<I, O, P>,
  model: RunningModel,
  decode: (response: Response) => Result.Result<A, InferenceError>,
  sample: Input<I>,
  options: CallOptions<P> | undefined,
): Stream.Stream<A, CallError<P>> =>
  Stream.unwrap(
    Effect.withFiber((fiber) => {
      const caller = callerOf(fiber)
      const now = MonotonicTime.millis(fiber.getRef(Clock.Clock))
      const request = Effect.fromResult(calls.request(sample, options, now, caller))
      return Effect.map(request, (request) =>
        Stream.mapEffect(
          Stream.mapError(stream(callableBy(caller, model), request), calls.failure),
          (response): Effect.Effect<A, CallError<P>> => Effect.fromResult(decode(response)),
        ),
      )
    }),
  )

/** A call as an effect, which cancels it when it is interrupted. */
const toEffect = <A, E>(
  call: (now: number, caller: CallerService | undefined, reply: TypedCalls.TypedReply<A, E>) => Cancel,
): Effect.Effect<A, E> =>
  Effect.withFiber((fiber) => {
    const caller = callerOf(fiber)
    const clock = fiber.getRef(Clock.Clock)
    return Effect.callback((resume) =>
      Effect.sync(call(MonotonicTime.millis(clock), caller, (outcome) => resume(Effect.fromResult(outcome)))),
    )
  })
