/** Sessions of a model that runs elsewhere, as promises without fibers. */
import { Context, Effect } from "effect"
import type { Declared } from "@nereid/core/internal/model/Declared"
import type { Definition } from "@nereid/core/internal/model/Definition"
import type { Fields } from "@nereid/core/internal/model/Field"
import { fromCall, runner } from "@nereid/core/internal/call/PromiseCall"
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

const open = <I extends Fields, O extends Fields, P extends Declared>(
  calls: TypedCalls.TypedCalls<I, O, P>,
  model: RunningModel,
  sequence: SequenceCall,
): PromiseSession<I, O, P> => {
  const { infer, end, answer, endAnswer } = SessionCalls.plainCalls(calls, model, sequence)
  const effects = SessionCalls.session(calls, model, sequence)
  const streams = (options: { readonly signal?: AbortSignal } | undefined) =>
    runner(Context.empty, () => options?.signal)
  const close = () => Effect.runPromise(SessionCalls.close(sequence))
  return {
    id: sequence.id,
    infer: (sample, ...[options]) =>
      fromCall((reply) => infer(sample, options, MonotonicTime.millis(), reply), options),
    stream: (sample, ...options) => streams(options[0])(effects.stream(sample, ...options)),
    end: (sample, ...[options]) => fromCall((reply) => end(sample, options, MonotonicTime.millis(), reply), options),
    endStream: (sample, ...options) => streams(options[0])(effects.endStream(sample, ...options)),
    withParameters: {
      infer: (sample, ...[options]) =>
        fromCall((reply) => answer(sample, options, MonotonicTime.millis(), reply), options),
      stream: (sample, ...options) => streams(options[0])(effects.withParameters.stream(sample, ...options)),
      end: (sample, ...[options]) =>
        fromCall((reply) => endAnswer(sample, options, MonotonicTime.millis(), reply), options),
      endStream: (sample, ...options) => streams(options[0])(effects.withParameters.endStream(sample, ...options)),
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}
