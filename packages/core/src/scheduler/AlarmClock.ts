/** The clock of alarms, and the scope that ends them. */
import { Clock, Context, Duration, Effect, type Fiber, type Scope } from "effect"
import { Alarm } from "./Alarm.ts"

/** Makes alarms. All of them are silent once its scope has closed. */
export class AlarmClock {
  readonly clock: Clock.Clock
  readonly #runFork: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  readonly #alarms = new Set<Alarm>()

  private constructor(clock: Clock.Clock, runFork: (effect: Effect.Effect<void>) => Fiber.Fiber<void>) {
    this.clock = clock
    this.#runFork = runFork
  }

  static readonly make: Effect.Effect<AlarmClock, never, Scope.Scope> = Effect.acquireRelease(
    Effect.map(
      Effect.context<never>(),
      (context) => new AlarmClock(Context.get(context, Clock.Clock), Effect.runForkWith(context)),
    ),
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
