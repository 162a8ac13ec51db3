/**
 * Calls of user code. What has ended when the call returns (a value, or an effect such as `Effect.succeed`) costs no fiber;
 * any other effect runs on a fiber of its own, which begins at once. A promise is waited for, in any case: whoever does not
 * want its value any more aborts the signal that the code has.
 */
import { Effect, Exit, type Fiber } from "effect"

/** What a function of the user may return. */
export type Returned<A, E, R> = A | PromiseLike<A> | Effect.Effect<A, E, R>

/** What a function has thrown, or its promise was rejected with: an error that no type has announced. */
export class Thrown {
  readonly error: unknown

  constructor(error: unknown) {
    this.error = error
  }
}

/** A call that goes on after it has returned. */
export interface Going<A, E> {
  /** Takes its end, once, and never before this returns. */
  readonly addObserver: (observer: (exit: Exit.Exit<A, E>) => void) => void
  readonly interruptUnsafe: () => void
}

/** The end of the call, or what goes on. */
export const call = <I, C, A, E, R>(
  code: (input: I, context: C) => Returned<A, E, R>,
  input: I,
  context: C,
  fork: (effect: Effect.Effect<A, E, R>) => Fiber.Fiber<A, E>,
): Exit.Exit<A, E | Thrown> | Going<A, E | Thrown> => {
  try {
    const returned = code(input, context)
    if (Effect.isEffect(returned)) {
      // An effect of A that is an exit is an exit of A.
      if (Exit.isExit(returned)) return returned as Exit.Exit<A, E>
      const fiber = fork(returned)
      return fiber.pollUnsafe() ?? fiber
    }
    return isPromise(returned) ? promised(returned) : Exit.succeed(returned)
  } catch (error) {
    return Exit.fail(new Thrown(error))
  }
}

const promised = <A>(promise: PromiseLike<A>): Going<A, Thrown> => ({
  addObserver: (observer) =>
    void promise.then(
      (value) => observer(Exit.succeed(value)),
      (error: unknown) => observer(Exit.fail(new Thrown(error))),
    ),
  interruptUnsafe: () => {},
})

export const isPromise = <A>(returned: A | PromiseLike<A>): returned is PromiseLike<A> =>
  typeof returned === "object" && returned !== null && "then" in returned && typeof returned.then === "function"
