/** The clock of alarms, and the scope that ends them. */
import { Clock, Context, Duration, Effect, type Fiber, type Scope } from "effect"
import { Alarm } from "./Alarm.ts"

/**
 * The unit in which timers count, in milliseconds. 0: timers are as exact as the clock, like those of a test clock.
 * Default: 1 for the system's clock, 0 for any other.
 */
export const TimerTick = Context.Reference<number | undefined>("@nereid/core/AlarmClock/TimerTick", {
  defaultValue: () => undefined,
})

/** Makes alarms. All of them are silent once its scope has closed. */
export class AlarmClock {
  readonly clock: Clock.Clock
  /** The unit of its timers, in milliseconds; 0 if they are exact. */
  readonly tick: number
  readonly #runFork: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  readonly #alarms = new Set<Alarm>()

  private constructor(context: Context.Context<never>) {
    this.clock = Context.get(context, Clock.Clock)
    const isSystem = this.clock === Context.get(Context.empty(), Clock.Clock)
    this.tick = Context.get(context, TimerTick) ?? (isSystem ? 1 : 0)
    this.#runFork = Effect.runForkWith(context)
  }

  static readonly make: Effect.Effect<AlarmClock, never, Scope.Scope> = Effect.acquireRelease(
    Effect.map(Effect.context<never>(), (context) => new AlarmClock(context)),
    (alarms) => Effect.sync(() => alarms.#silence()),
  )

  /** `ring` is called when it rings. */
  alarm(ring: () => void): Alarm {
    const alarm = new Alarm((millis) => this.#runFork(this.clock.sleep(Duration.millis(millis))), ring)
    this.#alarms.add(alarm)
    return alarm
  }

  #silence(): void {
    for (const alarm of this.#alarms) alarm.clear()
  }
}
