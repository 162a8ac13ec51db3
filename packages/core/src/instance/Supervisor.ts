/**
 * An instance that survives the executor of its batches, such as a worker thread. If the executor dies, only its
 * batches fail. It restarts with increasing delays, until it dies or fails to start too often in a row. The owner
 * starts and stops the executor.
 */
import type { Batch } from "../batch/Batch.ts"
import type { Instance, InstanceStatus, Interrupt, Settle } from "./Instance.ts"
import { Deferred, Duration, Effect, Exit, Option, Result } from "effect"

/** Limits on restarting an instance that has died. */
export interface RestartOptions {
  /** Restarts in a row, without a batch that succeeds between them. Default 5. */
  readonly times?: number
  /** Before the first of them; doubled before each further one. Default 100 milliseconds. */
  readonly delay?: Duration.Input
}

/** Executes batches until it ends. */
export interface Supervised {
  readonly isAlive: boolean
  /** Completes with the reason once the executor has ended, intentionally or not. */
  readonly exited: Deferred.Deferred<string>
  /** Whether its owner has ended it, so that it does not count as a death. Default no. */
  readonly wasEnded?: boolean
  readonly execute: (batch: Batch, settle: Settle) => Interrupt
  /** Ends the executor and waits until it has ended. Harmless if it has already ended. */
  readonly stop: Effect.Effect<void>
}

export interface SupervisorOptions<W extends Supervised, E extends { readonly message: string }, R> {
  readonly name: string
  /** Maximum concurrent batches of a worker; called once the first one has started. */
  readonly concurrency: () => number
  /** As in Instance. `stop` of the worker then ends batches that still run. */
  readonly interruptTimeout?: number
  /** A worker that has started; not to be interrupted. */
  readonly start: Effect.Effect<W, E, R>
  readonly restart: RestartOptions
}

const defaultTimes = 5
const defaultDelay = "100 millis"

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

/** The first start is part of this: its failure is the caller's. The scope's end stops the worker and waits for it. */
export const make = Effect.fnUntraced(function* <W extends Supervised, E extends { readonly message: string }, R>({
  name,
  concurrency,
  interruptTimeout,
  start,
  restart: options,
}: SupervisorOptions<W, E, R>) {
  const { times = defaultTimes, delay = defaultDelay } = options
  const firstDelay = Duration.toMillis(delay)
  // Set by the start itself: an interruption that waited for it keeps the next line of this function from being
  // reached.
  let worker!: W
  const begin = Effect.map(start, (started) => {
    worker = started
  })
  yield* Effect.acquireRelease(begin, () => Effect.suspend(() => worker.stop))
  let status: InstanceStatus = "available"
  let restarts = 0

  const become = (next: InstanceStatus) => {
    status = next
    instance.onStatusChange()
  }

  /** Whether there is a worker again. */
  const restart = Effect.gen(function* () {
    while (restarts < times) {
      yield* Effect.sleep(firstDelay * 2 ** restarts)
      restarts += 1
      const started = yield* begin.pipe(Effect.result, Effect.uninterruptible)
      if (Result.isSuccess(started)) return true
      yield* Effect.logWarning(
        `Instance ${name} failed to restart (${restarts} of ${times}): ${started.failure.message}`,
      )
    }
    return false
  })

  const supervise = Effect.gen(function* () {
    for (;;) {
      const reason = yield* Deferred.await(worker.exited)
      if (worker.wasEnded) restarts = 0
      become("restarting")
      yield* Effect.logWarning(`The worker thread of instance ${name} died: ${reason}`)
      if (!(yield* restart)) break
      become("available")
      yield* Effect.logInfo(`Instance ${name} has restarted`)
    }
    become("failed")
    yield* Effect.logError(`Instance ${name} has failed permanently after ${times} restarts in a row`)
  })

  const instance: Instance = {
    name,
    concurrency: concurrency(),
    ...(interruptTimeout === undefined ? {} : { interruptTimeout }),
    // A thread may have ended before its supervisor has noticed.
    status: () => (status === "available" && !worker.isAlive ? "restarting" : status),
    onStatusChange: () => {},
    execute: (batch, settle) =>
      worker.execute(batch, (exit) => {
        if (Exit.isSuccess(exit)) restarts = 0
        settle(exit)
      }),
  }
  yield* Effect.forkScoped(supervise, { startImmediately: true })
  return instance
})
