/**
 * Calls user code. A result that is complete when the call returns (a value, or an effect such as `Effect.succeed`)
 * requires no fiber. Any other effect runs on a separate fiber, which starts immediately. Promises are always awaited;
 * to cancel one, abort the signal passed to the code.
 */
import { Effect, Exit, type Fiber } from "effect"

/** Return type of a user's function. */
export type HandlerResult<A, E, R> = A | PromiseLike<A> | Effect.Effect<A, E, R>

/** An error that a function has thrown, or its promise was rejected with. No type declares it. */
export class ThrownError {
  readonly error: unknown

  constructor(error: unknown) {
    this.error = error
  }
}

/** A call that has not ended. */
export interface RunningCall<A, E> {
  /** The observer is called once, and never before this returns. */
  readonly addObserver: (observer: (exit: Exit.Exit<A, E>) => void) => void
  readonly interruptUnsafe: () => void
}

/** Calls the code; returns the result, or the running call. */
export const call = <I, C, A, E, R>(
  code: (input: I, context: C) => HandlerResult<A, E, R>,
  input: I,
  context: C,
  fork: (effect: Effect.Effect<A, E, R>) => Fiber.Fiber<A, E>,
): Exit.Exit<A, E | ThrownError> | RunningCall<A, E | ThrownError> => {
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
    return Exit.fail(new ThrownError(error))
  }
}

/** The same result with another value. */
export const mapResult = <A, B, E, R>(
  returned: HandlerResult<A, E, R>,
  change: (value: A) => B,
): HandlerResult<B, E, R> => {
  if (!Effect.isEffect(returned)) return isPromise(returned) ? returned.then(change) : change(returned)
  // An effect that has ended already stays one, which costs no fiber.
  return Exit.isExit(returned) ? Exit.map(returned as Exit.Exit<A, E>, change) : Effect.map(returned, change)
}

/** The call as an effect. */
export const suspend = <A, E, R>(code: () => HandlerResult<A, E, R>): Effect.Effect<A, E | ThrownError, R> =>
  Effect.suspend((): Effect.Effect<A, E | ThrownError, R> => {
    try {
      const returned = code()
      if (Effect.isEffect(returned)) return returned
      if (!isPromise(returned)) return Effect.succeed(returned)
      return Effect.tryPromise({ try: () => Promise.resolve(returned), catch: (error) => new ThrownError(error) })
    } catch (error) {
      return Effect.fail(new ThrownError(error))
    }
  })

const promised = <A>(promise: PromiseLike<A>): RunningCall<A, ThrownError> => ({
  addObserver: (observer) =>
    void promise.then(
      (value) => observer(Exit.succeed(value)),
      (error: unknown) => observer(Exit.fail(new ThrownError(error))),
    ),
  interruptUnsafe: () => {},
})

export const isPromise = <A>(returned: A | PromiseLike<A>): returned is PromiseLike<A> =>
  typeof returned === "object" && returned !== null && "then" in returned && typeof returned.then === "function"
