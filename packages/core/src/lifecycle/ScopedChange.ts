/** Changes of what a server serves that end with the server, and with whoever has asked for them. Not in which order they come. */
import { Cause, Effect, Exit, Fiber, type Scope } from "effect"
import { Unavailable } from "../error/InferenceError.ts"

/**
 * Runs the change as part of the scope, whose end waits until it has ended, so that nothing ends the process while native code
 * runs. A caller that leaves takes it back.
 */
export const within = <A, E, R>(
  scope: Scope.Scope,
  change: Effect.Effect<A, E, R>,
): Effect.Effect<A, E | Unavailable, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkIn(change, scope, { startImmediately: true })
      const exit = yield* Effect.onInterrupt(restore(Fiber.await(fiber)), () => Fiber.interrupt(fiber))
      const isEnded = Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) && scope.state._tag === "Closed"
      return yield* isEnded ? new Unavailable({ message: "Server is stopping" }) : exit
    }),
  )
