/**
 * An instance that survives the executor of its batches, such as a worker thread or a process. If the executor dies,
 * only its batches fail. It restarts with increasing delays, until it dies or fails to start too often in a row. The
 * executor may also end while it is idle; the next batch starts it again. The owner starts and stops the executor.
 */
import type { Batch } from "../batch/Batch.ts"
import type { Instance, InstanceStatus, Interrupt, Settle } from "./Instance.ts"
import { Unavailable } from "../error/InferenceError.ts"
import { IdleBatches } from "./IdleBatches.ts"
import { Deferred, Duration, Effect, Exit, Option, Result } from "effect"

/** Limits on restarting an instance that has died. */
export interface RestartOptions {
  /** Restarts in a row, without a batch that succeeds, or ten minutes of life, between them. Default 5. */
  readonly times?: number
  /** Before the first of them; doubled before each further one, up to 30 seconds. Default 100 milliseconds. */
  readonly delay?: Duration.Input
}

/** Executes batches until it ends. */
export interface Supervised {
  readonly isAlive: boolean
  /** Completes with the reason once the executor has ended, intentionally or not. */
  readonly exited: Deferred.Deferred<string>
  /** Whether its owner has ended it, so that it does not count as a death. Default no. */
  readonly wasEnded?: boolean
  /** `part`: which part of it executes the batch, if it has several. */
  readonly execute: (batch: Batch, settle: Settle, part?: number) => Interrupt
  /** Ends the executor and waits until it has ended. Harmless if it has already ended. */
  readonly stop: Effect.Effect<void>
}

/** An instance whose executor may have several parts. Those of an executor with an idle timeout are all alike. */
export interface SupervisedInstance extends Instance {
  readonly execute: (batch: Batch, settle: Settle, part?: number) => Interrupt
}

export interface SupervisorOptions<W extends Supervised, E extends { readonly message: string }, R> {
  readonly name: string
  /** Maximum concurrent batches of a worker; called once the first one has started. */
  readonly concurrency: () => number
  /** The executor, in messages. Default "worker thread". */
  readonly executor?: string
  /** As in Instance. */
  readonly interruptsRequests?: boolean
  /** As in Instance. `stop` of the worker then ends batches that still run. */
  readonly interruptTimeout?: number
  /** A worker that has started; not to be interrupted. */
  readonly start: Effect.Effect<W, E, R>
  readonly restart: RestartOptions
  /** Time without batches after which the worker ends, until the next batch. Default: it never ends. */
  readonly idleTimeout?: Duration.Input | undefined
}

const defaultTimes = 5
const defaultDelay = "100 millis"

/** Milliseconds up to which delays double. */
const maxDelay = 30_000

/** Milliseconds of life after which a death is not in a row with the deaths before it. */
const healthyPeriod = 600_000

/** The problem with the options; undefined if they are valid. */
export const wrongRestart = (options: RestartOptions = {}): string | undefined => {
  const { times = defaultTimes, delay = defaultDelay } = options
  if (!Number.isSafeInteger(times) || times < 0) {
    return `restart.times must be an integer of at least 0, but ${times} was given`
  }
  const millis = Option.getOrUndefined(Option.map(Duration.fromInput(delay), Duration.toMillis))
  if (millis !== undefined && millis >= 0 && Number.isFinite(millis)) return undefined
  return `restart.delay must be a finite time of at least 0, but ${String(delay)} was given`
}

/** The problem with an idle timeout; undefined if it is valid. */
export const wrongIdleTimeout = (timeout: Duration.Input | undefined): string | undefined => {
  if (timeout === undefined) return undefined
  const millis = Option.getOrUndefined(Option.map(Duration.fromInput(timeout), Duration.toMillis))
  if (millis !== undefined && millis > 0 && Number.isFinite(millis)) return undefined
  return `idleTimeout must be a finite time above 0, but ${String(timeout)} was given`
}

/** The first start is part of this: its failure is the caller's. The scope's end stops the worker and waits for it. */
export const make = Effect.fnUntraced(function* <W extends Supervised, E extends { readonly message: string }, R>({
  name,
  concurrency,
  executor = "worker thread",
  interruptsRequests,
  interruptTimeout,
  start,
  restart: options,
  idleTimeout,
}: SupervisorOptions<W, E, R>) {
  const { times = defaultTimes, delay = defaultDelay } = options
  const firstDelay = Duration.toMillis(delay)
  // Set by the start itself: an interruption that waited for it keeps the next line of this function from being
  // reached.
  let worker: W | undefined
  let startedAt = 0
  const now = Effect.clockWith((clock) => Effect.sync(() => Number(clock.monotonicTimeNanosUnsafe()) / 1e6))
  const begin = Effect.tap(start, (started) => {
    worker = started
    return Effect.map(now, (millis) => void (startedAt = millis))
  })
  const first = yield* Effect.acquireRelease(begin, () => Effect.suspend(() => worker?.stop ?? Effect.void))
  let status: InstanceStatus = "available"
  let restarts = 0

  const become = (next: InstanceStatus) => {
    status = next
    instance.onStatusChange()
  }

  /** Whether there is a worker again. */
  const restart = Effect.gen(function* () {
    while (restarts < times) {
      yield* Effect.sleep(Math.max(firstDelay, Math.min(maxDelay, firstDelay * 2 ** restarts)))
      restarts += 1
      const started = yield* begin.pipe(Effect.result, Effect.uninterruptible)
      if (Result.isSuccess(started)) return started.success
      yield* Effect.logWarning(
        `Instance ${name} failed to restart (${restarts} of ${times}): ${started.failure.message}`,
      )
    }
    return undefined
  })

  /** Waits for the next batch, and returns a worker for it; the error of the start if there is none. */
  const wake = Effect.gen(function* () {
    worker = undefined
    yield* idle.nextBatch
    const started = yield* begin.pipe(Effect.result, Effect.uninterruptible)
    if (Result.isSuccess(started)) idle.awake()
    else idle.fail(new Unavailable({ message: `instance ${name} failed to start: ${started.failure.message}` }))
    return started
  })

  const supervise = Effect.gen(function* () {
    for (let current: W | undefined = first; ;) {
      const reason: string = yield* Deferred.await(current.exited)
      if (idle.isAsleep) {
        const woken: Result.Result<W, E> = yield* wake
        if (Result.isSuccess(woken)) {
          current = woken.success
          continue
        }
        become("restarting")
        yield* Effect.logWarning(`Instance ${name} failed to start: ${woken.failure.message}`)
      } else {
        if (current.wasEnded || (yield* now) - startedAt >= healthyPeriod) restarts = 0
        become("restarting")
        yield* Effect.logWarning(`The ${executor} of instance ${name} died: ${reason}`)
      }
      current = yield* restart
      if (current === undefined) break
      become("available")
      yield* Effect.logInfo(`Instance ${name} has restarted`)
    }
    become("failed")
    yield* Effect.logError(`Instance ${name} has failed permanently after ${times} restarts in a row`)
  })

  const execute: SupervisedInstance["execute"] = (batch, settle, part) => {
    if (worker === undefined) throw new Error(`Instance ${name} has no worker. This is a bug.`)
    const settled: Settle = (exit) => {
      if (Exit.isSuccess(exit)) restarts = 0
      settle(exit)
    }
    return worker.execute(batch, settled, part)
  }
  const idle = new IdleBatches(execute)
  const instance: SupervisedInstance = {
    name,
    concurrency: concurrency(),
    ...(interruptsRequests === undefined ? {} : { interruptsRequests }),
    ...(interruptTimeout === undefined ? {} : { interruptTimeout }),
    // A thread may have ended before its supervisor has noticed.
    status: () => (status === "available" && !idle.isAsleep && worker?.isAlive !== true ? "restarting" : status),
    onStatusChange: () => {},
    execute: idleTimeout === undefined ? execute : idle.execute,
  }
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => idle.fail(new Unavailable({ message: `instance ${name} is stopping` }))),
  )
  yield* Effect.forkScoped(supervise, { startImmediately: true })
  if (idleTimeout !== undefined) {
    const endIfIdle = Effect.suspend(() => {
      if (status !== "available" || idle.isAsleep || !idle.checkIdle()) return Effect.void
      idle.sleep()
      return Effect.andThen(Effect.logDebug(`Instance ${name} is idle: its thread ends`), worker?.stop ?? Effect.void)
    })
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(idleTimeout), endIfIdle)))
  }
  return instance
})
