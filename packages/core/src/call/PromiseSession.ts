/** Sessions of a model for callers without Effect: calls are promises, and the caller closes the session. */
import { type Context, Effect, Exit, Scope } from "effect"
import type { Declared } from "../model/Declared.ts"
import type { Input, Sample } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import type { SequenceId } from "../request/SequencePosition.ts"
import type { Answer, CallArguments } from "./Inference.ts"
import { type PromiseCallOptions, run, runner } from "./PromiseCall.ts"
import type { SessionOptions, Sessions } from "./Session.ts"

/**
 * One sequence of requests, as Session has it. Calls reject with the tagged errors of `Errors`, and with errors that
 * the model declares.
 *
 * ```ts
 * await using session = sums.session()
 * const { TOTAL } = await session.infer({ VALUE: 1 })
 * ```
 */
export interface PromiseSession<
  I extends Fields,
  O extends Fields,
  P extends Declared = undefined,
> extends AsyncDisposable {
  readonly id: SequenceId
  readonly infer: (sample: Input<I>, ...options: CallArguments<P, PromiseCallOptions<P>>) => Promise<Sample<O>>
  /**
   * Streams the responses to one sample. Iteration starts the request; leaving the loop cancels it. The next request
   * follows its end.
   */
  readonly stream: (sample: Input<I>, ...options: CallArguments<P, PromiseCallOptions<P>>) => AsyncIterable<Sample<O>>
  /** As `infer`, with the last sample of the sequence: the model learns that the sequence ends. */
  readonly end: (sample: Input<I>, ...options: CallArguments<P, PromiseCallOptions<P>>) => Promise<Sample<O>>
  /** As `stream`, with the last sample: the end of a sequence of a decoupled model. */
  readonly endStream: (
    sample: Input<I>,
    ...options: CallArguments<P, PromiseCallOptions<P>>
  ) => AsyncIterable<Sample<O>>
  /** The same calls with the parameters of their responses. */
  readonly withParameters: {
    readonly infer: (
      sample: Input<I>,
      ...options: CallArguments<P, PromiseCallOptions<P>>
    ) => Promise<Answer<Sample<O>, P>>
    readonly stream: (
      sample: Input<I>,
      ...options: CallArguments<P, PromiseCallOptions<P>>
    ) => AsyncIterable<Answer<Sample<O>, P>>
    readonly end: (
      sample: Input<I>,
      ...options: CallArguments<P, PromiseCallOptions<P>>
    ) => Promise<Answer<Sample<O>, P>>
    readonly endStream: (
      sample: Input<I>,
      ...options: CallArguments<P, PromiseCallOptions<P>>
    ) => AsyncIterable<Answer<Sample<O>, P>>
  }
  /** Ends the sequence, behind the requests so far. */
  readonly close: () => Promise<void>
}

/** Opens a session, whose effects run in this context. */
export const open = <I extends Fields, O extends Fields, P extends Declared>(
  { session }: Pick<Sessions<I, O, P>, "session">,
  context: Context.Context<never>,
  options: SessionOptions | undefined,
): PromiseSession<I, O, P> => {
  const scope = Scope.makeUnsafe()
  const { id, infer, stream, end, endStream, withParameters } = Effect.runSync(Scope.provide(session(options), scope))
  const close = () => run(Scope.close(scope, Exit.void), context)
  const streams = (options: { readonly signal?: AbortSignal } | undefined) =>
    runner(
      () => context,
      () => options?.signal,
    )
  return {
    id,
    infer: (sample, ...options) => run(infer(sample, ...options), context, options[0]),
    stream: (sample, ...options) => streams(options[0])(stream(sample, ...options)),
    end: (sample, ...options) => run(end(sample, ...options), context, options[0]),
    endStream: (sample, ...options) => streams(options[0])(endStream(sample, ...options)),
    withParameters: {
      infer: (sample, ...options) => run(withParameters.infer(sample, ...options), context, options[0]),
      stream: (sample, ...options) => streams(options[0])(withParameters.stream(sample, ...options)),
      end: (sample, ...options) => run(withParameters.end(sample, ...options), context, options[0]),
      endStream: (sample, ...options) => streams(options[0])(withParameters.endStream(sample, ...options)),
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}
