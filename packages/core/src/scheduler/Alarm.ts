/**
 * One call at a time to come, on the clock of whoever made it: the test clock in tests. Whole milliseconds at best, as
 * that is what timers of an event loop count; who needs it sooner asks the clock itself.
 */
import { Clock, Duration, Effect, Exit, type Fiber } from "effect"

export interface Alarm {
  /** Rings after so many milliseconds, at least 0; not at any time that was set before. */
  readonly set: (millis: number) => void
  readonly clear: () => void
}

/** Cleared when the scope closes. */
export const make = Effect.fnUntraced(function* (ring: () => void) {
  const clock = yield* Clock.Clock
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  let sleeping: Fiber.Fiber<void> | undefined
  const alarm: Alarm = {
    set: (millis) => {
      alarm.clear()
      const fiber = (sleeping = runFork(clock.sleep(Duration.millis(millis))))
      fiber.addObserver((exit) => {
        if (sleeping === fiber && Exit.isSuccess(exit)) ring()
      })
    },
    clear: () => {
      const fiber = sleeping
      sleeping = undefined
      fiber?.interruptUnsafe()
    },
  }
  yield* Effect.addFinalizer(() => Effect.sync(alarm.clear))
  return alarm
})
