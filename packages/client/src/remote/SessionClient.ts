/** Sessions of a model that runs elsewhere, as promises without fibers. */
import { Context, Effect, type Stream } from "effect"
import type { CallError, Declared } from "@nereid/core/internal/model/Declared"
import type { Definition, Input } from "@nereid/core/internal/model/Definition"
import type { Fields } from "@nereid/core/internal/model/Field"
import type { CallArguments } from "@nereid/core/internal/call/Inference"
import { fromCall, type PromiseCallOptions, runner } from "@nereid/core/internal/call/PromiseCall"
import type { PromiseSession } from "@nereid/core/internal/call/PromiseSession"
import { SequenceCall } from "@nereid/core/internal/call/SequenceCall"
import type { SessionOptions } from "@nereid/core/internal/call/Session"
import * as SessionCalls from "@nereid/core/internal/call/SessionCalls"
import * as TypedCalls from "@nereid/core/internal/call/TypedCalls"
import * as MonotonicTime from "@nereid/core/internal/request/MonotonicTime"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"

/** Makes a function that opens sessions of the model. */
export const opener = <I extends Fields, O extends Fields, P extends Declared>(
  definition: Definition<I, O, P>,
  model: RunningModel,
): ((options?: SessionOptions) => PromiseSession<I, O, P>) => {
  const calls = TypedCalls.make(definition, model)
  return (options) => open(calls, model, new SequenceCall(model, options))
}

type Arguments<P extends Declared> = CallArguments<P, PromiseCallOptions<P>>

const open = <I extends Fields, O extends Fields, P extends Declared>(
  calls: TypedCalls.TypedCalls<I, O, P>,
  model: RunningModel,
  sequence: SequenceCall,
): PromiseSession<I, O, P> => {
  const plain = SessionCalls.plainCalls(calls, model, sequence)
  const effects = SessionCalls.session(calls, model, sequence)
  const single = <A>(decode: SessionCalls.Decode<A>, isEnd: boolean) => {
    const call = plain(decode, isEnd)
    return (sample: Input<I>, ...[options]: Arguments<P>): Promise<A> =>
      fromCall((reply) => call(sample, options, MonotonicTime.millis(), reply), options)
  }
  const streamed =
    <A>(stream: (sample: Input<I>, ...options: Arguments<P>) => Stream.Stream<A, CallError<P>>) =>
    (sample: Input<I>, ...options: Arguments<P>): AsyncIterable<A> =>
      runner(Context.empty, () => options[0]?.signal)(stream(sample, ...options))
  const close = () => Effect.runPromise(SessionCalls.close(sequence))
  const { outputs, answer } = calls.samples
  return {
    id: sequence.id,
    infer: single(outputs, false),
    stream: streamed(effects.stream),
    end: single(outputs, true),
    endStream: streamed(effects.endStream),
    withParameters: {
      infer: single(answer, false),
      stream: streamed(effects.withParameters.stream),
      end: single(answer, true),
      endStream: streamed(effects.withParameters.endStream),
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}
