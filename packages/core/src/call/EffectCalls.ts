/**
 * Typed calls of a running model as effects and streams, which `yield* M` returns. PromiseCall.ts has them as promises.
 */
import { Clock, Effect, type Result, Stream } from "effect"
import type { InferenceError } from "../error/InferenceError.ts"
import type { CallError, Declared } from "../model/Declared.ts"
import type { Definition } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import type { Response } from "../request/Request.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import { decodedStream } from "../running/CallableModel.ts"
import { callableBy, callerOf } from "./Caller.ts"
import { toEffect } from "./EffectCall.ts"
import type { CallOptions, Inference } from "./Inference.ts"
import type { CallsOf } from "./Session.ts"
import { sessions } from "./SessionCalls.ts"
import * as TypedCalls from "./TypedCalls.ts"
import * as MonotonicTime from "../request/MonotonicTime.ts"

/** The typed calls of a running model, in sessions if it declares sequences. */
export const inference = <I extends Fields, O extends Fields, P extends Declared>(
  definition: Definition<I, O, P>,
  model: RunningModel,
): CallsOf<I, O, P> =>
  // The declaration has a state exactly where its type has a sequence.
  (definition.state === undefined ? independent(definition, model) : sessions(definition, model)) as CallsOf<I, O, P>

/** Calls of requests that are independent: samples and batches in, samples and batches out. */
const independent = <I extends Fields, O extends Fields, P extends Declared>(
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
    stream: (sample, ...[options]) =>
      responses(calls, calls.samples.request, calls.samples.outputs, model, sample, options),
    streamBatch: (batch, ...[options]) =>
      responses(calls, calls.batches.request, calls.batches.outputs, model, batch, options),
    withParameters: {
      infer: (sample, ...[options]) =>
        toEffect((now, caller, reply) => withParameters.infer(sample, options, now, reply, caller)),
      inferBatch: (batch, ...[options]) =>
        toEffect((now, caller, reply) => withParameters.inferBatch(batch, options, now, reply, caller)),
      stream: (sample, ...[options]) =>
        responses(calls, calls.samples.request, calls.samples.answer, model, sample, options),
      streamBatch: (batch, ...[options]) =>
        responses(calls, calls.batches.request, calls.batches.answer, model, batch, options),
    },
  }
}

/** Streams the responses of one input, encoded by `encode` and decoded by `decode`. */
export const responses = <P extends Declared, Given, A>(
  { failure }: { readonly failure: (failure: InferenceError) => CallError<P> },
  encode: TypedCalls.StreamCodec<Given, unknown, P>["request"],
  decode: (response: Response) => Result.Result<A, InferenceError>,
  model: RunningModel,
  input: Given,
  options: CallOptions<P> | undefined,
): Stream.Stream<A, CallError<P>> =>
  Stream.unwrap(
    Effect.withFiber((fiber) => {
      const caller = callerOf(fiber)
      const now = MonotonicTime.millis(fiber.getRef(Clock.Clock))
      const request = Effect.fromResult(encode(input, options, now, caller))
      return Effect.map(request, (request) => decodedStream(callableBy(caller, model), request, { decode, failure }))
    }),
  )
