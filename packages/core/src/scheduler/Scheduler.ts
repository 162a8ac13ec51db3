/**
 * The process around the queue. Requests come and go by plain calls, so a front end pays no fiber for them.
 *
 *   submit ─► RequestQueue ─► Dispatcher ─► instance.execute(batch) ─► RunningBatch ─► reply, per request
 *     │ full: QueueFull   │ Deadlines: DeadlineExceeded         │ fails: every request of that batch, no other;
 *     │                   │ cancel: leaves at once              │        or its halves go to the queue again;
 *     │                   │                                     │        Unrecoverable: it was the last batch
 *     │                   │                                     │ cancel of all its requests: interrupted
 *
 * A free instance pulls: with `maxQueueDelay` 0 (the default) no request waits while an instance is free.
 */
import { constVoid } from "effect/Function"
import { Cause, type Clock, Deferred, Effect, Result, Scheduler as EffectScheduler, type Tracer } from "effect"
import { Admission } from "./Admission.ts"
import { AdmissionControl } from "./AdmissionControl.ts"
import { AlarmClock } from "./AlarmClock.ts"
import type { Activity } from "../running/Activity.ts"
import type { ModelCalls } from "../running/CallableModel.ts"
import { type Release, OpenRequests } from "../running/OpenRequests.ts"
import { RequestCompletion } from "./RequestCompletion.ts"
import * as Backlog from "./Backlog.ts"
import type { Batch } from "../batch/Batch.ts"
import { Deadlines } from "./Deadlines.ts"
import { Dispatcher } from "./Dispatcher.ts"
import * as EarlyRefusal from "./EarlyRefusal.ts"
import { QueuedRequest } from "./QueuedRequest.ts"
import {
  Cancelled,
  DeadlineExceeded,
  type InferenceError,
  ModelNotReady,
  QueueFull,
  QueueTimeout,
  type Unrecoverable,
} from "../error/InferenceError.ts"
import { type Cancel, type Emit, errorPrefix, noParameters, type Reply, type Request } from "../request/Request.ts"
import { tracerOf } from "../request/RequestSpan.ts"
import type { StartThreshold } from "../model/Batching.ts"
import type { Instance } from "../instance/Instance.ts"
import { Patience } from "./Patience.ts"
import { PolicyQueue } from "./PolicyQueue.ts"
import { Pool } from "./Pool.ts"
import type { Queue, QueueOptions } from "./Queue.ts"
import { plain, type Queueing } from "../model/QueuePolicy.ts"
import { QueueTimeouts } from "./QueueTimeouts.ts"
import { RequestQueue } from "./RequestQueue.ts"
import { counted } from "./ResponseCount.ts"
import { sharedRefusal, stopping, withoutStack } from "../error/Refusal.ts"
import { SequenceMove } from "../transfer/SequenceMove.ts"
import type { FailureReason, RequestStatistics, ModelStatistics } from "../metrics/ModelStatistics.ts"
import * as MonotonicTime from "../request/MonotonicTime.ts"

export interface SchedulerOptions extends QueueOptions {
  /** Name of the model, for messages. */
  readonly model: string
  readonly instances: ReadonlyArray<Instance>
  readonly statistics: ModelStatistics
  /** Rows at which a batch goes at once; empty: only `maxBatchSize`. */
  readonly preferredBatchSizes: ReadonlyArray<number>
  /** Undefined if all requests are equal, and wait as long as they like. */
  readonly queueing?: Queueing | undefined
  /** Time in which requests without a deadline are to be answered, in nanoseconds. Default: what callers wait for. */
  readonly latencyTarget?: number | undefined
  /** Requests share a batch only where this agrees (Grouping.ts). */
  readonly groupKey: (request: Request) => string
  /** Whether the halves of a batch that fails are executed by themselves. */
  readonly bisects: boolean
  /** Executes nothing before so many requests wait. */
  readonly startsAt?: StartThreshold | undefined
  readonly batchOf: (requests: ReadonlyArray<Request>) => Batch
  /** Whether another scheduler, ahead of this one, queues requests that go on. Default false. */
  readonly passesReschedules?: boolean | undefined
  /** Makes the queue. Default: the queue of these options. */
  readonly makeQueue?: ((hooks: QueueHooks) => Queue) | undefined
}

/** The parts of a scheduler that its queue may need. */
export interface QueueHooks {
  readonly instances: ReadonlyArray<Instance>
  /** Ends a request that has left the queue. */
  readonly refuse: (queued: QueuedRequest, reason: FailureReason, error: InferenceError) => void
  /** Makes a queue of the scheduler's options. */
  readonly makeDefault: () => Queue
  readonly warn: (message: string) => void
}

/** Services of the fiber that made the scheduler, for its plain code. */
interface SchedulerRuntime {
  readonly alarms: AlarmClock
  /** Takes turns of the event loop. */
  readonly tasks: EffectScheduler.SchedulerDispatcher
  readonly tracer: Tracer.Tracer | undefined
  readonly log: (message: string, cause: Cause.Cause<unknown>) => void
  readonly warn: (message: string) => void
}

/** Stops when the scope closes. */
export const make = Effect.fnUntraced(function* (options: SchedulerOptions) {
  const context = yield* Effect.context<never>()
  const runFork = Effect.runForkWith(context)
  const scheduler = new Scheduler(options, {
    alarms: yield* AlarmClock.make,
    tasks: (yield* EffectScheduler.Scheduler).makeDispatcher(),
    tracer: tracerOf(context),
    log: (message, cause) => void runFork(Effect.logError(message, cause)),
    warn: (message) => void runFork(Effect.logWarning(message)),
  })
  yield* Effect.addFinalizer(() => scheduler.stop)
  return scheduler
})

export class Scheduler {
  readonly #options: SchedulerOptions
  readonly #clock: Clock.Clock
  readonly #pool: Pool
  readonly #admission: AdmissionControl
  readonly #queue: Queue
  readonly #timeouts: QueueTimeouts | undefined
  readonly #deadlines: Deadlines<QueuedRequest>
  readonly #completion: RequestCompletion
  readonly #dispatcher: Dispatcher
  readonly #openRequests = new OpenRequests()
  readonly #unrecoverable = Deferred.makeUnsafe<Unrecoverable>()
  #fatal: Unrecoverable | undefined
  #isStopped = false
  #hasStarted = false

  constructor(options: SchedulerOptions, { alarms, tasks, tracer, log, warn }: SchedulerRuntime) {
    const { model, statistics, batchOf, bisects, queueing } = options
    const { clock } = alarms
    this.#options = options
    this.#clock = clock
    this.#pool = new Pool(options.instances)
    const learnsRows = options.makeQueue === undefined && isPlain(options)
    const admission = new Admission(options.maxBatchSize, learnsRows)
    const queue = this.#makeQueue(warn, admission)
    this.#queue = queue
    const patience = new Patience()
    this.#admission = new AdmissionControl({
      admission,
      patience: options.latencyTarget ?? patience,
      queue,
      pool: this.#pool,
      maxBatchSize: options.maxBatchSize,
      refusals: statistics.queueRefusals,
      refuse: (queued, error) => this.#completion.refuse(queued, "REJECTED", error),
    })
    const onExpired = () => this.#dispatcher.wake()
    this.#timeouts = queue.timed && new QueueTimeouts(queue.timed, alarms, this.#nanos, onExpired)
    this.sequences =
      queue.movable &&
      new SequenceMove(queue.movable, {
        nanos: this.#nanos,
        changed: () => {
          this.#timeouts?.changed()
          this.#dispatcher.wake()
        },
      })
    this.#deadlines = new Deadlines(alarms, (queued) => this.#expire(queued))
    this.#completion = new RequestCompletion({
      preserveOrdering: queueing?.preserveOrdering === true,
      queue,
      deadlines: this.#deadlines,
      statistics,
      admission,
      patience: options.latencyTarget === undefined ? patience : undefined,
      nanos: this.#nanos,
      onEnd: () => this.#openRequests.end(),
      onLeave: () => this.#dispatcher.left(),
      onDefect: (defect) => log(`A response callback of model '${model}' failed`, Cause.die(defect)),
    })
    this.#dispatcher = new Dispatcher({
      queue,
      pool: this.#pool,
      batches: {
        model,
        batchOf,
        onUnrecoverable: (error) => this.#failPermanently(error),
        retry: bisects ? (requests) => this.#retry(requests) : undefined,
        passesReschedules: options.passesReschedules === true,
        resume: queue.canResume === true ? (queued) => this.#resume(queued) : undefined,
        onSettled: queue.ended && ((requests, instance) => this.#settled(requests, instance)),
        completion: this.#completion,
        admission,
        statistics,
        nanos: this.#nanos,
        currentTimeMillis: () => clock.currentTimeMillisUnsafe(),
        spans: tracer && { tracer, clock },
        onDefect: (instance, cause) => log(`Model '${model}' failed on instance ${instance}`, cause),
      },
      tasks,
      alarms,
      admission: this.#admission,
      isHeld: options.startsAt && (() => this.#isHeld(options.startsAt)),
      onFailed: () => this.#refuseQueued(() => this.#notRunning("")),
    })
  }

  /** Counted in the model's statistics, or in `counts`. */
  readonly submit = (request: Request, reply: Reply, counts: RequestStatistics = this.#options.statistics): Cancel => {
    const queuedAt = this.#nanos()
    const queued: QueuedRequest = new QueuedRequest(
      request.emit === undefined ? request : { ...request, emit: this.#emitting(request.emit, () => queued) },
      reply,
      counts,
      queuedAt,
    )
    const problem = this.#queue.refusal?.(request)
    if (problem !== undefined) {
      reply(Result.fail(problem))
      return constVoid
    }
    const refusal = this.#admit(queued)
    if (refusal !== undefined) {
      counts.failed("REJECTED", 0, request.id)
      reply(Result.fail(refusal))
      return constVoid
    }
    this.#openRequests.begin()
    this.#completion.ordering?.add(queued)
    this.#deadlines.add(queued)
    this.#timeouts?.changed()
    request.trace?.at("QUEUE_START", queuedAt)
    this.#dispatcher.wake()
    return () => this.#completion.cancel(queued)
  }

  /**
   * The refusal of a request that has not arrived completely, and would be late even with a single row, or finds no
   * room. Undefined if it may be admitted, and where more than its connection and its deadline decides on its place in
   * the queue.
   */
  readonly preview: ModelCalls["preview"] = (deadline, connection, id) => {
    const { queueing, makeQueue, statistics } = this.#options
    if (queueing !== undefined || makeQueue !== undefined || !this.isReady()) return undefined
    const request = { id: "", inputs: [], rows: 1, parameters: noParameters, deadline, connection }
    const refusal = this.#admission.preview(request, this.#nanos()) ?? this.#fullPreview(request, id)
    if (refusal !== undefined) statistics.failed("REJECTED", 0)
    return refusal
  }

  /** The queue has changed beside a submission: a slot of a sequence may be free. */
  readonly queueChanged = (): void => {
    this.#timeouts?.changed()
    if (this.#queue.size > 0) this.#dispatcher.wake()
  }

  /** Requests that no instance has yet. */
  readonly pending = (): number => this.#queue.size

  /** The queue and the instances at this moment. */
  readonly activity = (): Activity => {
    const now = this.#nanos()
    const oldest = this.#queue.oldest
    return {
      oldestNanos: oldest === undefined ? 0 : now - oldest,
      instances: this.#pool.size,
      busyNanos: this.#pool.busyNanos(now),
      sequences: this.#queue.counts?.(now),
    }
  }

  /** False while no instance is available. */
  readonly isReady = (): boolean => !this.#isStopped && this.#fatal === undefined && this.#pool.isAvailable

  /** Waits for the failure after which it executes nothing any more. */
  get unrecoverable(): Effect.Effect<Unrecoverable> {
    return Deferred.await(this.#unrecoverable)
  }

  /** Completes once every accepted request has ended, and every `keep` is released. */
  get drained(): Effect.Effect<void> {
    return this.#openRequests.drained
  }

  /** Refuses new sequences. Completes once all others are over; undefined without sequences. */
  get endSequences(): Effect.Effect<void> | undefined {
    if (this.#queue.endSequences === undefined) return undefined
    return Effect.callback((resume) => this.#queue.endSequences?.(() => resume(Effect.void)))
  }

  /** No new call reaches the model. What it has accepted goes on. */
  readonly retire = (): void => this.#queue.retire?.()

  /** Moves sequences to other servers; undefined without sequences. */
  readonly sequences: SequenceMove | undefined

  /** Keeps `drained` waiting until its result is called. */
  readonly keep = (): Release => this.#openRequests.keep()

  /** These execute batches from now on, and no others; completes once the others have ended theirs. */
  readonly replaceInstances = (instances: ReadonlyArray<Instance>): Effect.Effect<void> =>
    Effect.suspend(() => {
      this.#queue.replaceInstances?.(instances)
      return this.#pool.replace(instances, this.#queue.vacated?.bind(this.#queue))
    })

  /** Rejects the queued requests, interrupts the running batches, and waits for their end. */
  get stop(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#isStopped = true
      this.#refuseQueued(stopping)
      return this.#dispatcher.stop
    })
  }

  readonly #nanos = (): number => Number(this.#clock.monotonicTimeNanosUnsafe())

  #makeQueue(warn: (message: string) => void, admission: Admission): Queue {
    const { makeQueue } = this.#options
    if (makeQueue === undefined) return this.#makeDefault(admission)
    const makeDefault = () => this.#makeDefault(admission)
    return makeQueue({
      instances: this.#options.instances,
      refuse: (queued, reason, error) => this.#completion.refuse(queued, reason, error),
      makeDefault,
      warn,
    })
  }

  #makeDefault(admission: Admission): Queue {
    const { queueing, maxQueueSize } = this.#options
    if (isPlain(this.#options)) return new RequestQueue(this.#options, admission)
    const reject = (queued: QueuedRequest) => {
      this.#options.statistics.queueRefusals.timeout += 1
      const error = new QueueTimeout({ message: "Request timeout expired", retryAfter: this.#retryAfter() })
      this.#completion.refuse(queued, "REJECTED", error)
    }
    return new PolicyQueue({ ...this.#options, queueing: queueing ?? plain(maxQueueSize), reject })
  }

  /** Queues the request, or returns the refusal. */
  #admit(queued: QueuedRequest): InferenceError | undefined {
    const { maxQueueSize, groupKey, statistics } = this.#options
    const { ordering } = this.#completion
    const { request } = queued
    if (this.#isStopped) return stopping()
    if (this.#fatal !== undefined) return this.#permanentFailure(errorPrefix(request), this.#fatal)
    if (this.#pool.hasFailed) return this.#notRunning(errorPrefix(request))
    if (request.deadline !== undefined && request.deadline <= MonotonicTime.millis(this.#clock)) {
      statistics.queueRefusals.deadline += 1
      return expired(request)
    }
    const tooLate = this.#admission.refusal(queued, queued.queuedAt)
    if (tooLate !== undefined) return tooLate
    const hasRoom = ordering === undefined || this.#queue.size + ordering.held < maxQueueSize
    if (hasRoom && this.#queue.offer(queued, groupKey(request))) return undefined
    statistics.queueRefusals.full += 1
    const displaced = this.#queue.displaceable?.(request)
    if (displaced === undefined) return this.#queueFull(request)
    this.#completion.refuse(displaced, "REJECTED", this.#queueFull(displaced.request))
    return this.#queue.offer(queued, groupKey(request)) ? undefined : this.#queueFull(request)
  }

  /** The refusal of a request for a queue that is full, in which it takes no other one's place. */
  #fullPreview(request: Request, readId: (() => string | undefined) | undefined): QueueFull | undefined {
    if (this.#queue.size < this.#options.maxQueueSize || this.#queue.displaceable?.(request) !== undefined)
      return undefined
    const id = readId?.()
    if (id === undefined) return undefined
    this.#options.statistics.queueRefusals.full += 1
    return id === "" ? EarlyRefusal.full(this.#retryAfter()) : this.#queueFull({ ...request, id })
  }

  #queueFull(request: Request): QueueFull {
    const reason = this.#queue.fullReason?.(request)
    const message = `${errorPrefix(request)}${EarlyRefusal.fullMessage}${reason === undefined ? "" : `: ${reason}`}`
    return withoutStack(() => new QueueFull({ message, retryAfter: this.#retryAfter() }))
  }

  #emitting(emit: Emit, queued: () => QueuedRequest): Emit {
    const inTurn = this.#completion.ordering?.inTurn(queued, emit) ?? emit
    return counted(inTurn, queued, this.#options.statistics, this.#nanos)
  }

  #isHeld(threshold: StartThreshold | undefined): boolean {
    const { size, backlogged = 0 } = this.#queue
    this.#hasStarted ||=
      threshold === undefined || (size - backlogged >= threshold.requests && backlogged >= threshold.backlogged)
    return !this.#hasStarted
  }

  #resume(queued: QueuedRequest): InferenceError | undefined {
    if (this.#isStopped) return new Cancelled({ message: "" })
    return this.#queue.resume?.(queued, this.#nanos())
  }

  #settled(requests: ReadonlyArray<QueuedRequest>, instance: Instance): void {
    this.#queue.ended?.(requests, this.#nanos(), instance)
    this.#timeouts?.changed()
    if (this.#queue.size > 0) this.#dispatcher.wake()
  }

  #retry(requests: ReadonlyArray<QueuedRequest>): void {
    this.#queue.retry(requests)
    this.#dispatcher.wake()
  }

  #expire(queued: QueuedRequest): void {
    if (queued.running === undefined && !queued.done) this.#options.statistics.queueRefusals.deadline += 1
    this.#completion.refuse(queued, queued.running === undefined ? "REJECTED" : "CANCELED", expired(queued.request))
  }

  #failPermanently(error: Unrecoverable): void {
    if (this.#fatal !== undefined) return
    this.#fatal = error
    this.#refuseQueued(() => this.#permanentFailure("", error))
    Deferred.doneUnsafe(this.#unrecoverable, Effect.succeed(error))
  }

  #refuseQueued(error: () => InferenceError): void {
    for (const queued of this.#queue.clear()) this.#completion.refuse(queued, "OTHER", error())
  }

  #retryAfter(): number {
    return Backlog.drainTime(this.#queue.size, this.#pool.concurrency, this.#options.statistics)
  }

  #notRunning(prefix: string): ModelNotReady {
    return new ModelNotReady({ message: `${prefix}no instance of model '${this.#options.model}' is running` })
  }

  #permanentFailure(prefix: string, { message }: Unrecoverable): ModelNotReady {
    const { model } = this.#options
    return new ModelNotReady({ message: `${prefix}model '${model}' has stopped accepting requests: ${message}` })
  }
}

/** Whether all requests are equal, and batches may have any size. */
const isPlain = ({ queueing, preferredBatchSizes, maxBatchSize }: SchedulerOptions): boolean =>
  queueing === undefined && preferredBatchSizes.every((size) => size === maxBatchSize)

const expired = (request: Request): DeadlineExceeded =>
  request.id === "" ? expiredWithoutId : withoutStack(() => deadlineExceeded(request))

const deadlineExceeded = (request: Pick<Request, "id">) =>
  new DeadlineExceeded({ message: `${errorPrefix(request)}Deadline Exceeded` })

const expiredWithoutId = sharedRefusal(() => deadlineExceeded({ id: "" }))
