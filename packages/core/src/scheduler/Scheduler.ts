/**
 * The process around the queue. Requests come and go by plain calls, so a front end pays no fiber for them.
 *
 *   submit ─► RequestQueue ─► Dispatcher ─► instance.execute(batch) ─► RunningBatch ─► reply, per request
 *     │ full: QueueFull   │ Deadlines: DeadlineExceeded         │ fails: every request of that batch, no other;
 *     │                   │                                     │        or its halves go to the queue again;
 *     │                   │                                     │        Unrecoverable: it was the last batch
 *                         │ cancel: leaves at once              │ cancel of all its requests: interrupted
 *
 * A free instance pulls: with `maxQueueDelay` 0 (the default) nothing ever waits for company while an instance is free.
 */
import { constVoid } from "effect/Function"
import { Cause, Clock, Deferred, Effect, Latch, Result } from "effect"
import { Answers } from "./Answers.ts"
import * as Backlog from "./Backlog.ts"
import type { Batch } from "../batch/Batch.ts"
import * as Deadlines from "./Deadlines.ts"
import * as Dispatcher from "./Dispatcher.ts"
import { QueuedRequest } from "./QueuedRequest.ts"
import {
  DeadlineExceeded,
  type InferenceError,
  ModelNotReady,
  QueueFull,
  QueueTimeout,
  type Unrecoverable,
} from "../error/InferenceError.ts"
import { type Cancel, type Emit, errorPrefix, type Reply, type Request } from "../request/Request.ts"
import { tracerOf } from "../request/RequestSpan.ts"
import type { Instance } from "../instance/Instance.ts"
import { PolicyQueue } from "./PolicyQueue.ts"
import { Pool } from "./Pool.ts"
import type { QueueOptions } from "./Queue.ts"
import { plain, type Queueing } from "../model/QueuePolicy.ts"
import * as QueueTimeouts from "./QueueTimeouts.ts"
import { RequestQueue } from "./RequestQueue.ts"
import { counted } from "./ResponseCount.ts"
import { stopping } from "./RunningBatch.ts"
import type { RequestStatistics, ModelStatistics } from "../metrics/ModelStatistics.ts"

export interface SchedulerOptions extends QueueOptions {
  /** Name of the model, for messages. */
  readonly model: string
  readonly instances: ReadonlyArray<Instance>
  readonly statistics: ModelStatistics
  /** Rows at which a batch goes at once; empty: only `maxBatchSize`. */
  readonly preferredBatchSizes: ReadonlyArray<number>
  /** Undefined where all requests are equal, and wait as long as they like. */
  readonly queueing?: Queueing | undefined
  /** Requests share a batch only where this agrees (Grouping.ts). */
  readonly groupKey: (request: Request) => string
  /** Whether the halves of a batch that fails are executed by themselves. */
  readonly bisects: boolean
  readonly batchOf: (requests: ReadonlyArray<Request>) => Batch
}

export interface Scheduler {
  /** Counted in the model's statistics, or where it is told. */
  readonly submit: (request: Request, reply: Reply, counts?: RequestStatistics) => Cancel
  /** Requests that no instance has yet. */
  readonly pending: () => number
  /** False while no instance is available. */
  readonly isReady: () => boolean
  /** Waits for the failure after which it executes nothing any more. */
  readonly unrecoverable: Effect.Effect<Unrecoverable>
  /** Completes once every request that was accepted has ended, and whoever keeps it waiting has let go. */
  readonly drained: Effect.Effect<void>
  /** These execute batches from now on, and no others; completes once the others have ended theirs. */
  readonly replaceInstances: (instances: ReadonlyArray<Instance>) => Effect.Effect<void>
  /** What it returns lets go. */
  readonly keep: () => () => void
}

export const make = Effect.fnUntraced(function* (options: SchedulerOptions) {
  const { model, statistics, groupKey, batchOf, bisects, preferredBatchSizes, queueing } = options
  const clock = yield* Clock.Clock
  const context = yield* Effect.context<never>()
  const runFork = Effect.runForkWith(context)
  const tracer = tracerOf(context)
  const nanos = () => Number(clock.monotonicTimeNanosUnsafe())
  const log = (message: string, cause: Cause.Cause<unknown>) => void runFork(Effect.logError(message, cause))
  const pool = new Pool(options.instances)
  const retryAfter = () => Backlog.drainTime(queue.size, pool.concurrency, statistics)
  let isStopped = false
  let fatal: Unrecoverable | undefined
  const unrecoverable = Deferred.makeUnsafe<Unrecoverable>()
  /** Requests that were accepted and have not ended. */
  let unanswered = 0
  const drained = Latch.makeUnsafe(true)

  const began = () => {
    if (unanswered === 0) drained.closeUnsafe()
    unanswered += 1
  }
  const ended = () => {
    unanswered -= 1
    if (unanswered === 0) drained.openUnsafe()
  }

  const queue =
    queueing === undefined && preferredBatchSizes.every((size) => size === options.maxBatchSize)
      ? new RequestQueue(options)
      : new PolicyQueue({
          ...options,
          queueing: queueing ?? plain(options.maxQueueSize),
          reject: (entry) =>
            answers.refuse(
              entry,
              "REJECTED",
              new QueueTimeout({ message: "Request timeout expired", retryAfter: retryAfter() }),
            ),
        })
  const timeouts = queue instanceof PolicyQueue ? yield* QueueTimeouts.make(queue, nanos) : undefined
  const deadlines = yield* Deadlines.make<QueuedRequest>((entry) =>
    answers.refuse(entry, entry.running === undefined ? "REJECTED" : "CANCELED", expired(entry.request)),
  )
  const answers = new Answers({
    preserveOrdering: queueing?.preserveOrdering === true,
    queue,
    deadlines,
    statistics,
    nanos,
    onEnd: ended,
    onDefect: (defect) => log(`A caller of model '${model}' failed on its answer`, Cause.die(defect)),
  })
  const { ordering } = answers
  const refuseQueued = (error: () => InferenceError) => {
    for (const entry of queue.clear()) answers.refuse(entry, "OTHER", error())
  }
  const again = (entries: ReadonlyArray<QueuedRequest>) => {
    queue.retry(entries)
    dispatcher.wake()
  }
  const dispatcher: Dispatcher.Dispatcher = yield* Dispatcher.make({
    queue,
    pool,
    batches: {
      model,
      batchOf,
      onUnrecoverable: (error) => {
        if (fatal !== undefined) return
        fatal = error
        refuseQueued(() => lost("", error))
        Deferred.doneUnsafe(unrecoverable, Effect.succeed(error))
      },
      retry: bisects ? again : undefined,
      answers,
      statistics,
      nanos,
      currentTimeMillis: () => clock.currentTimeMillisUnsafe(),
      spans: tracer && { tracer, clock },
      onDefect: (instance, cause) => log(`Model '${model}' failed on instance ${instance}`, cause),
    },
    onFailed: () => refuseQueued(() => notRunning("")),
  })
  yield* Effect.addFinalizer(() => {
    isStopped = true
    refuseQueued(stopping)
    return dispatcher.stop
  })

  const submit = (request: Request, reply: Reply, counts: RequestStatistics = statistics): Cancel => {
    const { emit } = request
    const queuedAt = nanos()
    const entry: QueuedRequest = new QueuedRequest(
      emit === undefined
        ? request
        : {
            ...request,
            emit: counted(
              inTurn(() => entry, emit),
              () => entry,
              statistics,
              nanos,
            ),
          },
      reply,
      counts,
      queuedAt,
    )
    const refusal = admit(entry)
    if (refusal !== undefined) {
      counts.failed("REJECTED", 0)
      reply(Result.fail(refusal))
      return constVoid
    }
    began()
    ordering?.add(entry)
    deadlines.add(entry)
    timeouts?.added()
    request.trace?.at("QUEUE_START", queuedAt)
    dispatcher.wake()
    return () => answers.cancel(entry)
  }

  const inTurn = (entry: () => QueuedRequest, emit: Emit) => ordering?.inTurn(entry, emit) ?? emit

  /** Queues the entry, or says why not. */
  const admit = (entry: QueuedRequest): InferenceError | undefined => {
    const { request } = entry
    if (isStopped) return stopping()
    if (fatal !== undefined) return lost(errorPrefix(request), fatal)
    if (pool.hasFailed) return notRunning(errorPrefix(request))
    if (request.deadline !== undefined && request.deadline <= clock.currentTimeMillisUnsafe()) return expired(request)
    const hasRoom = ordering === undefined || queue.size + ordering.held < options.maxQueueSize
    if (hasRoom && queue.offer(entry, groupKey(request))) return undefined
    return new QueueFull({ message: `${errorPrefix(request)}Exceeds maximum queue size`, retryAfter: retryAfter() })
  }

  const notRunning = (prefix: string) =>
    new ModelNotReady({ message: `${prefix}no instance of model '${model}' is running` })

  const lost = (prefix: string, { message }: Unrecoverable) =>
    new ModelNotReady({ message: `${prefix}model '${model}' takes no more requests: ${message}` })

  const scheduler: Scheduler = {
    submit,
    pending: () => queue.size,
    unrecoverable: Deferred.await(unrecoverable),
    isReady: () => !isStopped && fatal === undefined && pool.isAvailable,
    drained: drained.await,
    replaceInstances: (instances) => pool.replace(instances),
    keep: () => {
      let isKept = true
      began()
      return () => {
        if (isKept) ended()
        isKept = false
      }
    },
  }
  return scheduler
})

const expired = (request: Request) => new DeadlineExceeded({ message: `${errorPrefix(request)}Deadline Exceeded` })
