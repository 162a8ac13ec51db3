/**
 * Brings batches from the queue to free instances, by plain calls: no fiber waits for either. Whatever wakes it (a request,
 * an instance that is free or back, a delay that is over) only asks for a turn of the event loop, so that what else comes
 * in this one goes along.
 *
 *   wake ─► turn ─┬─ an instance is free, a batch is closed ─► RunningBatch ─┐
 *     ▲           └─ a batch waits for more ─► alarm ─┐                      │ settled
 *     └───────────────────────────────────────────────┴──────────────────────┘
 */
import { Clock, Context, Effect, Latch, Scheduler } from "effect"
import * as Alarm from "./Alarm.ts"
import type { QueuedRequest } from "./QueuedRequest.ts"
import type { Load, Pool } from "./Pool.ts"
import type { Queue } from "./Queue.ts"
import { RunningBatch, type RunningBatchOptions } from "./RunningBatch.ts"

export interface Dispatcher {
  /** The queue or an instance has changed. */
  readonly wake: () => void
  /** Interrupts what runs, and waits for its end. To be called when nothing is queued any more. */
  readonly stop: Effect.Effect<void>
}

export interface DispatcherOptions {
  readonly queue: Queue
  readonly pool: Pool
  readonly batches: RunningBatchOptions
  /** No instance will ever take what is queued. */
  readonly onFailed: () => void
}

/**
 * Alarms come up to so many nanoseconds late. What is left of a delay then is waited for by taking turns; the event loop
 * does not sleep meanwhile.
 */
const lateness = 2e6

export const make = Effect.fnUntraced(function* ({ queue, pool, batches, onFailed }: DispatcherOptions) {
  const tasks = (yield* Scheduler.Scheduler).makeDispatcher()
  // Time of any other clock passes as its owner likes, and its alarms come in time.
  const isLate = (yield* Clock.Clock) === Context.get(Context.empty(), Clock.Clock)
  const running = new Set<RunningBatch>()
  const ended = Latch.makeUnsafe(true)
  let isAwake = false

  const wake = () => {
    if (isAwake) return
    isAwake = true
    tasks.scheduleTask(turn, 0)
  }
  const alarm = yield* Alarm.make(wake)

  const turn = () => {
    isAwake = false
    if (pool.hasFailed) onFailed()
    let goesOn = true
    while (goesOn) goesOn = startNext()
  }

  /** Whether there may be another batch in this turn. One that has ended at once woke us: the next has its own. */
  const startNext = (): boolean => {
    const load = pool.leastLoaded
    if (load === undefined) return false
    const now = batches.nanos()
    const decision = queue.decide(now)
    if (decision._tag === "Wait") wait(decision.until - now)
    if (decision._tag !== "Take") return false
    start(load, decision.entries)
    return !isAwake
  }

  const wait = (nanos: number) => {
    if (!isLate) alarm.set(nanos / 1e6)
    else if (nanos > lateness) alarm.set((nanos - lateness) / 1e6)
    else wake()
  }

  const start = (load: Load, entries: ReadonlyArray<QueuedRequest>) => {
    const batch = new RunningBatch(batches, load.instance, entries)
    pool.begin(load)
    running.add(batch)
    ended.closeUnsafe()
    batch.start(() => {
      pool.end(load)
      running.delete(batch)
      if (running.size === 0) ended.openUnsafe()
      // In a turn of its own: where it ended at once, others have theirs in between.
      if (queue.size > 0) wake()
    })
  }

  const dispatcher: Dispatcher = {
    wake,
    stop: Effect.suspend(() => {
      for (const batch of running) batch.interrupt()
      return ended.await
    }),
  }
  pool.watch(wake)
  return dispatcher
})
