/** The time of a test, which passes only on demand. It is Effect's test clock; timers of Node.js are unaffected. */
import { type Duration, Effect } from "effect"
import * as TestClock from "effect/testing/TestClock"

/** Turns of the event loop: a request takes two or three for each model on its way, and a Promise one. */
const turns = 50

/** Completes once all fibers have run as far as possible without time passing. */
const settled = Effect.forEach(Array.from({ length: turns }), () => Effect.yieldNow, { discard: true })

/**
 * Advances the clock and runs the fibers that waited for it. Unlike TestClock.adjust, it first runs pending work as far
 * as possible without time passing, through all models of a pipeline. With 0, does only that.
 */
export const advance = (duration: Duration.Input): Effect.Effect<void> =>
  settled.pipe(Effect.andThen(TestClock.adjust(duration)), Effect.andThen(settled))
