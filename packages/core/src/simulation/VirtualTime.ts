/**
 * Effect's clock and scheduler on an agenda: fibers and timers take no time except for sleeps. Plain calls advance the
 * time, as fast as the machine allows, without waiting for the event loop.
 */
import { Clock, Context, Duration, Effect, Scheduler } from "effect"
import type { Agenda } from "./Agenda.ts"

/** The context for an effect that runs on the agenda. */
export const context = (agenda: Agenda): Context.Context<never> => {
  const scheduler = new Scheduler.MixedScheduler("async", (happen) => agenda.soon(happen))
  return Context.make(Scheduler.Scheduler, scheduler).pipe(Context.add(Clock.Clock, clock(agenda)))
}

const clock = (agenda: Agenda): Clock.Clock => {
  const millis = () => agenda.now / 1e6
  const nanos = () => BigInt(Math.round(agenda.now))
  return {
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: nanos,
    monotonicTimeNanos: Effect.sync(nanos),
    sleep: (duration) =>
      Effect.callback<void>((resume) =>
        Effect.sync(agenda.after(Duration.toMillis(duration) * 1e6, () => resume(Effect.void))),
      ),
  }
}
