/** Calls of a model as promises: their cancellation, and the errors that they reject with. */
import { Cause, type Context, Effect, Exit, Result, Stream } from "effect"
import type { CallOptions } from "./Inference.ts"
import type { Cancel } from "../request/Request.ts"
import type { Declared } from "../model/Declared.ts"
import type { TypedReply } from "./TypedCalls.ts"

/** Options of a call that returns a promise. */
export type PromiseCallOptions<P extends Declared = undefined> = CallOptions<P> & {
  /** Aborting it cancels the request; the call rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

/** Rejects with the effect's own error. */
export const run = async <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  context: Context.Context<R>,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<A> => {
  signal?.throwIfAborted()
  const exit = await Effect.runPromiseExitWith(context)(effect, signal === undefined ? undefined : { signal })
  if (Exit.isSuccess(exit)) return exit.value
  if (Cause.hasInterruptsOnly(exit.cause)) signal?.throwIfAborted()
  throw Cause.squash(exit.cause)
}

/**
 * Runs effects and streams as part of the request, for handlers that are functions or promises. They are interrupted
 * when the request ends, by its deadline or by its caller, and their calls of other models inherit the request's id and
 * deadline.
 *
 * ```ts
 * const { logits } = await run(bert.infer(tokens))
 * for await (const { TOKEN } of run(writer.stream({ PROMPT }))) tokens.push(TOKEN)
 * ```
 *
 * Rejects with the error of the effect, or with the signal's reason after the request has ended.
 */
export interface Run<R = never> {
  <A, E>(effect: Effect.Effect<A, E, R>): Promise<A>
  <A, E>(stream: Stream.Stream<A, E, R>): AsyncIterable<A>
}

/** Runs effects as promises and streams as async iterables, until the signal is aborted. */
export const runner = <R>(context: () => Context.Context<R>, signal: () => AbortSignal | undefined): Run<R> => {
  function running<A, E>(effect: Effect.Effect<A, E, R>): Promise<A>
  function running<A, E>(stream: Stream.Stream<A, E, R>): AsyncIterable<A>
  function running<A, E>(it: Effect.Effect<A, E, R> | Stream.Stream<A, E, R>) {
    const ends = signal()
    if (Stream.isStream(it)) {
      return Stream.toAsyncIterableWith(ends === undefined ? it : Stream.interruptWhen(it, aborted(ends)), context())
    }
    return run(it, context(), ends === undefined ? {} : { signal: ends })
  }
  return running
}

/** Dies of the signal's reason once it is aborted. */
const aborted = (signal: AbortSignal): Effect.Effect<never> =>
  Effect.callback((resume) => {
    const onAbort = () => resume(Effect.die(signal.reason))
    if (signal.aborted) return onAbort()
    signal.addEventListener("abort", onAbort)
    return Effect.sync(() => signal.removeEventListener("abort", onAbort))
  })

/** A plain call as a promise, without a fiber. */
export const fromCall = <A, E>(
  call: (reply: TypedReply<A, E>) => Cancel,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<A> =>
  new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    let cancel: Cancel | undefined
    const onAbort = () => {
      cancel?.()
      reject(signal?.reason)
    }
    signal?.addEventListener("abort", onAbort)
    cancel = call((outcome) => {
      signal?.removeEventListener("abort", onAbort)
      if (Result.isSuccess(outcome)) resolve(outcome.success)
      else reject(outcome.failure)
    })
  })
