/**
 * Moves batches from the queue to free instances, by plain calls without fibers. A wake-up is a request, a free or
 * restarted instance, or an elapsed delay. It only schedules a turn of the event loop, so that requests of the current
 * turn can share the batch. Batches that end before `execute` returns share one turn, within a limit (TurnLimit.ts).
 *
 *   wake ─► turn ─┬─ an instance is free, a batch is closed ─► RunningBatch ─┐
 *     ▲           └─ a batch waits for more ─► alarm ─┐                      │ settled
 *     └───────────────────────────────────────────────┴──────────────────────┘
 */
import { Effect, Latch, type Scheduler } from "effect"
import type { AdmissionControl } from "./AdmissionControl.ts"
import type { Alarm } from "./Alarm.ts"
import type { AlarmClock } from "./AlarmClock.ts"
import type { Load, Pool } from "./Pool.ts"
import type { Decision, Queue } from "./Queue.ts"
import type { QueuedRequest } from "./QueuedRequest.ts"
import { RunningBatch, type RunningBatchOptions } from "./RunningBatch.ts"
import { TurnLimit } from "./TurnLimit.ts"

export interface DispatcherOptions {
  readonly queue: Queue
  readonly pool: Pool
  readonly batches: RunningBatchOptions
  /** Takes turns of the event loop. */
  readonly tasks: Scheduler.SchedulerDispatcher
  readonly alarms: AlarmClock
  readonly admission: AdmissionControl | undefined
  /** Whether no batch may start yet. */
  readonly isHeld: (() => boolean) | undefined
  /** Called when no instance will take the queued requests any more. */
  readonly onFailed: () => void
}

/**
 * The longest time, in nanoseconds, that passes in turns of the event loop instead of a timer's sleep. Timers count
 * whole milliseconds: a sleep would make a delay of 0.1 ms ten times as long.
 */
const shortest = 0.25e6

export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #alarm: Alarm
  /** When the alarm rings, in monotonic nanoseconds; undefined if it is not set. */
  #alarmAt: number | undefined
  /**
   * Unordered. An array, because a Set whose entries change often replaces its table, and each former table keeps its
   * batches until a full collection.
   */
  readonly #running: Array<RunningBatch> = []
  readonly #ended = Latch.makeUnsafe(true)
  readonly #limit = new TurnLimit()
  #isAwake = false

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#alarm = options.alarms.alarm(() => {
      this.#alarmAt = undefined
      this.wake()
    })
    options.pool.watch(this.wake, () => this.#turn())
  }

  /** The queue or an instance has changed. */
  readonly wake = (): void => {
    if (this.#isAwake) return
    this.#isAwake = true
    this.#options.tasks.scheduleTask(this.#turn, 0)
  }

  /** Queued requests have left. The rest may be complete now, or too little to wait for the rate limiter. */
  readonly left = (): void => {
    const { pool, queue } = this.#options
    if (queue.size > 0 || pool.staged.length > 0) this.wake()
  }

  /**
   * Interrupts the running batches, and waits for their end: at most for the interrupt timeout of their instances.
   * Requires an empty queue.
   */
  get stop(): Effect.Effect<void> {
    return Effect.suspend(() => {
      for (const { instance } of this.#options.pool.staged) instance.permit?.withdraw()
      // A copy, because an interruption can end a batch and remove it.
      for (const batch of this.#running.slice()) batch.interrupt()
      const limit = Math.max(0, ...this.#running.map(({ interruptTimeout }) => interruptTimeout))
      if (this.#running.length === 0 || limit === Infinity) return this.#ended.await
      if (limit === 0) return this.#abandon
      // As a race of separate fibers: a stop is a finalizer, in which a wait cannot be interrupted.
      const hasTimedOut = Effect.raceFirst(Effect.as(this.#ended.await, false), Effect.as(Effect.sleep(limit), true))
      return Effect.flatMap(hasTimedOut, (timedOut) => (timedOut ? this.#abandon : Effect.void))
    })
  }

  /** Ends the batches that an interruption has not ended. */
  get #abandon(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { model } = this.#options.batches
      const batches = [...this.#running]
      for (const batch of batches) batch.abandon()
      const subject = batches.length === 1 ? "a batch" : `${batches.length} batches`
      return Effect.logWarning(`Model '${model}' stops without ${subject} that did not end after an interruption`)
    })
  }

  readonly #turn = (): void => {
    const { pool, onFailed } = this.#options
    this.#isAwake = false
    if (pool.hasFailed) onFailed()
    const { queue } = this.#options
    if (queue.instanceFailed !== undefined) for (const instance of pool.failed) queue.instanceFailed(instance)
    if (this.#options.isHeld?.() === true) return
    this.#limit.begin(this.#options.batches.nanos())
    let goesOn = true
    while (goesOn) goesOn = queue.isPinned === true ? this.#startPinned() : this.#startNext()
    if (pool.isLimited) this.#withdraw()
  }

  /** Instances without a batch that is ready do not wait for the rate limiter. */
  #withdraw(): void {
    const { pool, queue, batches } = this.#options
    for (const load of pool.staged) {
      const { instance } = load
      if (!pool.takesMore(load) || !queue.isReady(batches.nanos(), instance)) instance.permit?.withdraw()
    }
  }

  /** Whether another batch may start in this turn. Otherwise, the loop has been woken for it, if it can start at all. */
  #startNext(): boolean {
    const { pool, batches, admission } = this.#options
    const load = pool.leastLoaded
    if (load === undefined) return false
    const now = batches.nanos()
    admission?.drop(now)
    const decision = this.#decide(load, now)
    if (decision === undefined) return false
    if (decision._tag === "Wait") this.#wait(decision.until, now)
    if (decision._tag !== "Take") return false
    this.#start(load, decision.requests, now)
    return !this.#isAwake
  }

  /** The decision of the queue; undefined while the instance waits for the rate limiter. */
  #decide({ instance }: Load, now: number): Decision | undefined {
    const { queue } = this.#options
    const { permit } = instance
    // A ready batch stays in the queue until its instance has its permit, and grows meanwhile.
    if (permit !== undefined && queue.isReady(now, instance) && !permit.acquire()) return undefined
    const decision = queue.decide(now, instance)
    if (decision._tag !== "Take") permit?.release(false)
    return decision
  }

  /** As `#startNext`, with a separate decision for each free instance. */
  #startPinned(): boolean {
    const { pool, batches } = this.#options
    const now = batches.nanos()
    let until = Infinity
    for (const load of pool.free) {
      const decision = this.#decide(load, now)
      if (decision?._tag === "Wait" && decision.until < until) until = decision.until
      if (decision?._tag !== "Take") continue
      this.#start(load, decision.requests, now)
      return !this.#isAwake
    }
    if (until !== Infinity) this.#wait(until, now)
    return false
  }

  /** Wakes up at this time, or less than one tick of the timers later. */
  #wait(until: number, now: number): void {
    const { tick } = this.#options.alarms
    if (tick > 0 && until - now <= shortest) return this.wake()
    if (this.#alarmAt === until) return
    this.#alarmAt = until
    const millis = (until - now) / 1e6
    this.#alarm.set(tick > 0 ? Math.ceil(millis / tick) * tick : millis)
  }

  #start(load: Load, requests: ReadonlyArray<QueuedRequest>, now: number): void {
    const { pool, queue, batches } = this.#options
    const batch = new RunningBatch(batches, load.instance, requests)
    batches.admission.taken(rowsOf(requests), queue.size > 0)
    pool.begin(load, now)
    batch.place = this.#running.length
    this.#running.push(batch)
    this.#ended.closeUnsafe()
    let isStarting = true
    batch.start((endedAt) => {
      pool.end(load, endedAt)
      load.instance.permit?.release(pool.takesMore(load) && queue.isReady(endedAt, load.instance))
      this.#remove(batch)
      if (this.#running.length === 0) this.#ended.openUnsafe()
      const goesOn = isStarting && !pool.isLimited && this.#limit.allows(endedAt)
      if (queue.size > 0 && !goesOn) this.wake()
    })
    isStarting = false
  }

  #remove(batch: RunningBatch): void {
    const last = this.#running.pop()
    if (last === undefined || last === batch) return
    this.#running[batch.place] = last
    last.place = batch.place
  }
}

const rowsOf = (requests: ReadonlyArray<QueuedRequest>): number => {
  let rows = 0
  for (const { request } of requests) rows += request.rows
  return rows
}
