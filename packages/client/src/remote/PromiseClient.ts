/** A model that runs elsewhere, for callers without Effect: calls are promises, and it is closed by its caller. */
import { Context, Effect, Exit, Scope, type Stream } from "effect"
import type { ChunkOptions } from "@nereid/core/internal/call/ChunkedCall"
import type { Declared } from "@nereid/core/internal/model/Declared"
import type { Batched, Definition, Input, InputBatch, Sample } from "@nereid/core/internal/model/Definition"
import type { Answer, CallArguments } from "@nereid/core/internal/call/Inference"
import type { Fields } from "@nereid/core/internal/model/Field"
import { fromCall, type PromiseCallOptions, runner } from "@nereid/core/internal/call/PromiseCall"
import { responses } from "@nereid/core/internal/call/EffectCalls"
import type { PromiseSession } from "@nereid/core/internal/call/PromiseSession"
import type { SessionOptions } from "@nereid/core/internal/call/Session"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import * as TypedCalls from "@nereid/core/internal/call/TypedCalls"
import * as MonotonicTime from "@nereid/core/internal/request/MonotonicTime"
import * as SessionClient from "./SessionClient.ts"

/**
 * Model for callers without Effect. Calls reject with the tagged errors of `Errors`, and with errors that the model
 * declares.
 */
export interface PromiseClient<
  I extends Fields,
  O extends Fields,
  P extends Declared = undefined,
> extends AsyncDisposable {
  readonly infer: (sample: Input<I>, ...options: CallArguments<P, PromiseCallOptions<P>>) => Promise<Sample<O>>
  /**
   * Streams the responses to one sample: any number from a decoupled model, one from others. Iteration starts the
   * request; leaving the loop cancels it.
   */
  readonly stream: (sample: Input<I>, ...options: CallArguments<P, PromiseCallOptions<P>>) => AsyncIterable<Sample<O>>
  /** Streams the responses to several samples along axis 0, in one request, as in Inference. */
  readonly streamBatch: (
    batch: InputBatch<I>,
    ...options: CallArguments<P, PromiseCallOptions<P>>
  ) => AsyncIterable<Batched<O>>
  /** Infers several samples along axis 0. More than `maxBatchSize` are split into chunks; see ChunkOptions. */
  readonly inferBatch: (
    batch: InputBatch<I>,
    ...options: CallArguments<P, PromiseCallOptions<P> & ChunkOptions>
  ) => Promise<Batched<O>>
  /** The same calls with the parameters of their responses, as in Inference. */
  readonly withParameters: {
    readonly infer: (
      sample: Input<I>,
      ...options: CallArguments<P, PromiseCallOptions<P>>
    ) => Promise<Answer<Sample<O>, P>>
    readonly stream: (
      sample: Input<I>,
      ...options: CallArguments<P, PromiseCallOptions<P>>
    ) => AsyncIterable<Answer<Sample<O>, P>>
    readonly streamBatch: (
      batch: InputBatch<I>,
      ...options: CallArguments<P, PromiseCallOptions<P>>
    ) => AsyncIterable<Answer<Batched<O>, P>>
    readonly inferBatch: (
      batch: InputBatch<I>,
      ...options: CallArguments<P, PromiseCallOptions<P> & ChunkOptions>
    ) => Promise<Answer<Batched<O>, P>>
  }
  /** Closes the client. Pending calls reject with Unavailable. */
  readonly close: () => Promise<void>
}

/** Model with sequences for callers without Effect: its calls belong to sessions. */
export interface PromiseSessions<
  I extends Fields,
  O extends Fields,
  P extends Declared = undefined,
> extends AsyncDisposable {
  /**
   * Opens a session. Nothing is sent before its first request. `close` of the session, or the end of a block with
   * `await using`, ends its sequence.
   */
  readonly session: (options?: SessionOptions) => PromiseSession<I, O, P>
  /** Closes the client. Pending calls reject with Unavailable. */
  readonly close: () => Promise<void>
}

/** The client of a model: of sessions if it has sequences. */
export type PromiseClientOf<I extends Fields, O extends Fields, P extends Declared = undefined> = P extends {
  readonly sequence: object
}
  ? PromiseSessions<I, O, P>
  : PromiseClient<I, O, P>

/** Opens a client. Rejects with the error of the effect that opens the model. */
export const open = async <I extends Fields, O extends Fields, P extends Declared, E>(
  definition: Definition<I, O, P>,
  model: Effect.Effect<RunningModel, E, Scope.Scope>,
): Promise<PromiseClientOf<I, O, P>> => {
  const scope = await Effect.runPromise(Scope.make())
  const opening = Effect.onError(Scope.provide(model, scope), () => Scope.close(scope, Exit.void))
  const running = await Effect.runPromise(opening)
  const close = () => Effect.runPromise(Scope.close(scope, Exit.void))
  // The declaration has a state exactly where its type has a sequence.
  const client =
    definition.state === undefined ? independent(definition, running, close) : inSessions(definition, running, close)
  return client as PromiseClientOf<I, O, P>
}

const inSessions = <I extends Fields, O extends Fields, P extends Declared>(
  definition: Definition<I, O, P>,
  running: RunningModel,
  close: () => Promise<void>,
): PromiseSessions<I, O, P> => {
  return {
    session: SessionClient.opener(definition, running),
    close,
    [Symbol.asyncDispose]: close,
  }
}

const independent = <I extends Fields, O extends Fields, P extends Declared>(
  definition: Definition<I, O, P>,
  running: RunningModel,
  close: () => Promise<void>,
): PromiseClient<I, O, P> => {
  const calls = TypedCalls.make(definition, running)
  const { infer, inferBatch, samples, batches, withParameters } = calls
  return {
    infer: (sample, ...[options]) =>
      fromCall((reply) => infer(sample, options, MonotonicTime.millis(), reply), options),
    stream: (sample, ...[options]) =>
      streamed(options, responses(calls, samples.request, samples.outputs, running, sample, options)),
    streamBatch: (batch, ...[options]) =>
      streamed(options, responses(calls, batches.request, batches.outputs, running, batch, options)),
    inferBatch: (batch, ...[options]) =>
      fromCall((reply) => inferBatch(batch, options, MonotonicTime.millis(), reply), options),
    withParameters: {
      infer: (sample, ...[options]) =>
        fromCall((reply) => withParameters.infer(sample, options, MonotonicTime.millis(), reply), options),
      stream: (sample, ...[options]) =>
        streamed(options, responses(calls, samples.request, samples.answer, running, sample, options)),
      streamBatch: (batch, ...[options]) =>
        streamed(options, responses(calls, batches.request, batches.answer, running, batch, options)),
      inferBatch: (batch, ...[options]) =>
        fromCall((reply) => withParameters.inferBatch(batch, options, MonotonicTime.millis(), reply), options),
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

const streamed = <A, E>(
  options: { readonly signal?: AbortSignal } | undefined,
  responses: Stream.Stream<A, E>,
): AsyncIterable<A> => runner(Context.empty, () => options?.signal)(responses)
