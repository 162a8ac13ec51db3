/** Calls of a model by promises: how they are told to end early, and what they reject with. */
import { Cause, type Context, Effect, Exit } from "effect"
import type { CallOptions } from "./Definition.ts"

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
