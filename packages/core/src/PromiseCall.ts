/** Calls of a model by promises: how they are told to end early, and what they reject with. */
import { Cause, type Context, Effect, Exit, Result } from "effect"
import type { CallOptions } from "./Definition.ts"
import type { Cancel } from "./Inference.ts"
import type { TypedReply } from "./TypedCalls.ts"

/** How a call may be told to end early; see CallOptions for the rest. */
export interface PromiseCallOptions extends CallOptions {
  /** Aborting it cancels the request; the call rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

/** Rejects with the effect's own error. */
export const run = async <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  context: Context.Context<R>,
  { signal }: Pick<PromiseCallOptions, "signal"> = {},
): Promise<A> => {
  signal?.throwIfAborted()
  const exit = await Effect.runPromiseExitWith(context)(effect, signal === undefined ? undefined : { signal })
  if (Exit.isSuccess(exit)) return exit.value
  if (Cause.hasInterruptsOnly(exit.cause)) signal?.throwIfAborted()
  throw Cause.squash(exit.cause)
}

/** The same for a call that is no effect, without a fiber. */
export const ask = <A>(
  call: (reply: TypedReply<A>) => Cancel,
  { signal }: Pick<PromiseCallOptions, "signal"> = {},
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
