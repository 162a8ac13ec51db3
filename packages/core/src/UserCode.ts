/**
 * Calls of user code. What has ended when the call returns (a value, or an effect such as `Effect.succeed`) costs no fiber;
 * any other effect runs on a fiber of its own, which begins at once.
 */
import { Effect, Exit, type Fiber } from "effect"

/** What a function of the user may return. */
export type Returned<A, E, R> = A | Effect.Effect<A, E, R>

/** The end of the call, or the fiber that goes on with it. What the function throws is a defect. */
export const call = <I, A, E, R>(
  code: (input: I) => Returned<A, E, R>,
  input: I,
  fork: (effect: Effect.Effect<A, E, R>) => Fiber.Fiber<A, E>,
): Exit.Exit<A, E> | Fiber.Fiber<A, E> => {
  try {
    const returned = code(input)
    if (!Effect.isEffect(returned)) return Exit.succeed(returned)
    // An effect of A that is an exit is an exit of A.
    if (Exit.isExit(returned)) return returned as Exit.Exit<A, E>
    const fiber = fork(returned)
    return fiber.pollUnsafe() ?? fiber
  } catch (defect) {
    return Exit.die(defect)
  }
}
