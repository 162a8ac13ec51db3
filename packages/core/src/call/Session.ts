/**
 * Sessions of a model with sequences, as their callers see them: effects. SessionCalls.ts makes them, and promise
 * clients have them as promises.
 */
import type { Duration, Effect, Scope, Stream } from "effect"
import type { CallError, Declared } from "../model/Declared.ts"
import type { Input, Sample } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import type { SequenceId } from "../request/SequencePosition.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import type { Answer, CallArguments, Inference } from "./Inference.ts"

/** Options of a new session. */
export interface SessionOptions {
  /**
   * Id of the sequence, which no other live sequence of the model may have: from 1 to 2^64 - 1, or a text of 1 to 128
   * bytes. Any other throws a TypeError. Default: a random number of 63 bits.
   */
  readonly id?: SequenceId
  /**
   * Time after its last response at which the session expires without requests, up to the `maxIdleLimit` of the model;
   * its first request fails with InvalidRequest beyond that. `Infinity` for never. Default: the `maxIdle` of the model.
   * A server of Triton ignores it.
   */
  readonly maxIdle?: Duration.Input
  /**
   * Numbers the requests of `infer` and `end`, so that a client sends one again whose connection was lost, and the
   * server executes it once. Such a request goes on when its caller leaves. Requires a server of Nereid: one of Triton
   * may execute the request twice. Default false.
   */
  readonly retries?: boolean
}

/**
 * One sequence of requests. The first one starts it, `end` ends it. Requests go one after another in the order of their
 * calls: each is sent once the one before has its response. A request that fails leaves the state as it was. After an
 * `end` that fails, the session goes on.
 *
 * After a SequenceNotFound the session is over, and its `reason` says why. Each further call fails with it.
 */
export interface Session<I extends Fields, O extends Fields, P extends Declared = undefined> {
  readonly id: SequenceId
  readonly infer: (sample: Input<I>, ...options: CallArguments<P>) => Effect.Effect<Sample<O>, CallError<P>>
  /** Streams the responses of one sample: any number from a decoupled model, one from any other. */
  readonly stream: (sample: Input<I>, ...options: CallArguments<P>) => Stream.Stream<Sample<O>, CallError<P>>
  /** As `infer`, with the last sample of the sequence: the model learns that the sequence ends. */
  readonly end: (sample: Input<I>, ...options: CallArguments<P>) => Effect.Effect<Sample<O>, CallError<P>>
  /** As `stream`, with the last sample: the end of a sequence of a decoupled model. */
  readonly endStream: (sample: Input<I>, ...options: CallArguments<P>) => Stream.Stream<Sample<O>, CallError<P>>
  /** The same calls with the parameters of their responses. */
  readonly withParameters: {
    readonly infer: (
      sample: Input<I>,
      ...options: CallArguments<P>
    ) => Effect.Effect<Answer<Sample<O>, P>, CallError<P>>
    readonly stream: (
      sample: Input<I>,
      ...options: CallArguments<P>
    ) => Stream.Stream<Answer<Sample<O>, P>, CallError<P>>
    readonly end: (sample: Input<I>, ...options: CallArguments<P>) => Effect.Effect<Answer<Sample<O>, P>, CallError<P>>
    readonly endStream: (
      sample: Input<I>,
      ...options: CallArguments<P>
    ) => Stream.Stream<Answer<Sample<O>, P>, CallError<P>>
  }
}

/** The calls of a model with sequences, which all belong to a session. */
export interface Sessions<I extends Fields, O extends Fields, P extends Declared = undefined> {
  /**
   * Opens a session. Nothing is sent before its first request. When the scope closes, the sequence ends, and a server
   * of Nereid releases its state at once. A server of Triton, which requires a request with all inputs to end a
   * sequence, keeps it until it has been idle for too long; `end` ends it there.
   */
  readonly session: (options?: SessionOptions) => Effect.Effect<Session<I, O, P>, never, Scope.Scope>
  /** The model without its types, as front ends and the registry use it. */
  readonly model: RunningModel
}

/** The typed calls of a model: in sessions if it has sequences. */
export type CallsOf<I extends Fields, O extends Fields, P extends Declared = undefined> = P extends {
  readonly sequence: object
}
  ? Sessions<I, O, P>
  : Inference<I, O, P>
