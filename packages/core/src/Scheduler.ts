/**
 * The process around the queue: one fiber that hands batches to free instances, one that watches deadlines, and one
 * fiber per running batch. Requests come and go by plain calls, so a front end pays no fiber for them.
 *
 *   submit ─► RequestQueue ─► dispatcher ─► instance.execute(batch) ─► reply, per request
 *     │ full: QueueFull   │ deadline: DeadlineExceeded      │ fails: every request of that batch, no other
 *                         │ cancel: leaves at once          │ cancel of all its requests: interrupted
 *
 * A free instance pulls: with `maxQueueDelay` 0 (the default) nothing ever waits for company while an instance is free.
 */
import { Cause, Clock, Effect, Exit, type Fiber, Latch, Result, Scope } from "effect"
import * as Batch from "./Batch.ts"
import {
  DeadlineExceeded,
  ExecutionFailed,
  type InferenceError,
  ModelNotReady,
  QueueFull,
  Unavailable,
} from "./Errors.ts"
import { type Cancel, type Emit, errorPrefix, type Reply, type Request, type Trace } from "./Inference.ts"
import type { Execution, Instance } from "./Instance.ts"
import { type QueueOptions, RequestQueue } from "./RequestQueue.ts"
import type { ComputeDurations, FailureReason, Statistics } from "./Statistics.ts"

export interface SchedulerOptions extends QueueOptions {
  /** Name of the model, for messages. */
  readonly model: string
  readonly instances: ReadonlyArray<Instance>
  readonly statistics: Statistics
  /** Requests share a batch only where this agrees (Batch.groupKey). */
  readonly groupKey: (request: Request) => string
}

export interface Scheduler {
  readonly submit: (request: Request, reply: Reply) => Cancel
  /** Requests that no instance has yet. */
  readonly pending: () => number
  /** False while no instance is available. */
  readonly isReady: () => boolean
}

interface Entry {
  readonly request: Request
  /** Of a decoupled model: responses so far. */
  responses: number
  /** When its compute began, or its last response was taken. */
  respondedAt: number
  readonly queuedAt: number
  readonly key: string
  readonly reply: Reply
  /** Set while an instance has it. */
  running: Running | undefined
  done: boolean
}

interface Running {
  readonly instance: Instance
  readonly entries: ReadonlyArray<Entry>
  readonly startedAt: number
  /** Entries that still wait for an answer. */
  waiting: number
  fiber: Fiber.Fiber<unknown, unknown> | undefined
}

const nothing = () => {}

export const make = Effect.fnUntraced(function* (options: SchedulerOptions) {
  const { model, instances, statistics } = options
  /** Of the running batches: closed by hand, so that none starts while others already stop. */
  const batches = yield* Scope.make()
  const clock = yield* Clock.Clock
  const queue = new RequestQueue<Entry>(options)
  const load = new Map(instances.map((instance) => [instance, 0]))
  const wake = Latch.makeUnsafe(false)
  const deadlines = new Set<Entry>()
  const deadlineWake = Latch.makeUnsafe(false)
  /** Of callers, yet to be logged. */
  const defects: Array<unknown> = []
  let nextDeadline = Infinity
  let stopped = false

  const nanos = () => Number(clock.monotonicTimeNanosUnsafe())

  const hasFailed = () => instances.every((instance) => instance.status() === "failed")

  /** Ends an entry, whatever its state, without calling its reply. False where it has ended already. */
  const finish = (entry: Entry): boolean => {
    if (entry.done) return false
    entry.done = true
    if (entry.request.deadline !== undefined) deadlines.delete(entry)
    if (entry.running === undefined) {
      queue.remove(entry, entry.key)
    } else if (--entry.running.waiting === 0) {
      entry.running.fiber?.interruptUnsafe()
    }
    return true
  }

  const refuse = (entry: Entry, reason: FailureReason, error: InferenceError) => {
    if (!finish(entry)) return
    failed(entry, reason)
    answer(entry, Result.fail(error))
  }

  /** What a caller throws is its own failure: it neither keeps back the answers of others nor ends a fiber of ours. */
  const answer = (entry: Entry, outcome: Parameters<Reply>[0]) => {
    try {
      entry.reply(outcome)
    } catch (defect) {
      defects.push(defect)
    }
  }

  const logDefects = Effect.suspend(() =>
    Effect.forEach(
      defects.splice(0),
      (defect) => Effect.logError(`A caller of model '${model}' failed on its answer`, Cause.die(defect)),
      { discard: true },
    ),
  )

  const failed = (entry: Entry, reason: FailureReason) => {
    const now = nanos()
    statistics.failed(reason, now - entry.queuedAt)
    if (entry.request.emit === undefined || entry.running === undefined) return
    const response = statistics.response(entry.responses)
    const ended = reason === "CANCELED" ? response?.cancel : response?.fail
    ended?.add(now - entry.respondedAt)
  }

  /** Counts the responses of a decoupled model on their way, which ends with their request. */
  const counted =
    (emit: Emit, entry: () => Entry): Emit =>
    (response) =>
      Effect.suspend(() => {
        const responding = entry()
        // What runs may not have noticed yet.
        if (responding.done) return Effect.void
        const now = nanos()
        const took = now - responding.respondedAt
        if (responding.responses === 0) statistics.firstResponse(now - responding.queuedAt)
        return Effect.map(emit(response), () => {
          if (responding.done) return
          const counts = statistics.response(responding.responses)
          // Only now: a response that could not be sent, or that its caller did not wait for, is where the request ended.
          responding.responses += 1
          responding.respondedAt = nanos()
          counts?.computeInfer.add(took)
          counts?.computeOutput.add(0)
          counts?.success.add(took)
        })
      })

  const submit = (request: Request, reply: Reply): Cancel => {
    const key = options.groupKey(request)
    const emit = request.emit && counted(request.emit, () => entry)
    const entry: Entry = {
      request: emit === undefined ? request : { ...request, emit },
      responses: 0,
      respondedAt: 0,
      queuedAt: nanos(),
      key,
      reply,
      running: undefined,
      done: false,
    }
    const refusal = admit(entry)
    if (refusal !== undefined) {
      statistics.failed("REJECTED", 0)
      reply(Result.fail(refusal))
      return nothing
    }
    if (request.deadline !== undefined) {
      deadlines.add(entry)
      if (request.deadline < nextDeadline) deadlineWake.openUnsafe()
    }
    request.trace?.at("QUEUE_START", entry.queuedAt)
    wake.openUnsafe()
    return () => {
      if (finish(entry)) failed(entry, "CANCELED")
    }
  }

  /** Queues the entry, or says why not. */
  const admit = (entry: Entry): InferenceError | undefined => {
    const prefix = errorPrefix(entry.request)
    if (stopped) return stopping()
    if (hasFailed()) return new ModelNotReady({ message: `${prefix}no instance of model '${model}' is running` })
    const { deadline } = entry.request
    if (deadline !== undefined && deadline <= clock.currentTimeMillisUnsafe()) return expired(entry)
    if (!queue.offer(entry, entry.key)) return new QueueFull({ message: `${prefix}Exceeds maximum queue size` })
    return undefined
  }

  /** The least loaded instance that takes another batch. */
  const freeInstance = (): Instance | undefined => {
    let best: Instance | undefined
    let least = Infinity
    for (const [instance, batches] of load) {
      if (batches < instance.concurrency && batches < least && instance.status() === "available") {
        best = instance
        least = batches
      }
    }
    return best
  }

  const dispatcher = Effect.gen(function* () {
    for (;;) {
      wake.closeUnsafe()
      if (hasFailed()) {
        for (const entry of queue.clear()) {
          refuse(entry, "OTHER", new ModelNotReady({ message: `no instance of model '${model}' is running` }))
        }
      }
      const instance = freeInstance()
      const now = nanos()
      const decision = queue.decide(now)
      if (instance === undefined || decision._tag === "Empty") {
        yield* wake.await
        // Whatever else arrives in this turn of the event loop may still come along.
        yield* Effect.yieldNow
      } else if (decision._tag === "Wait") {
        yield* Effect.raceFirst(wake.await, Effect.sleep((decision.until - now) / 1e6))
      } else {
        yield* start(instance, queue.take(decision.group, decision.count))
      }
    }
  })

  const start = Effect.fnUntraced(function* (instance: Instance, entries: ReadonlyArray<Entry>) {
    const running: Running = { instance, entries, startedAt: nanos(), waiting: entries.length, fiber: undefined }
    for (const entry of entries) {
      entry.running = running
      entry.respondedAt = running.startedAt
    }
    load.set(instance, (load.get(instance) ?? 0) + 1)
    running.fiber = yield* execute(running).pipe(Effect.forkIn(batches, { startImmediately: true }))
  })

  const execute = (running: Running) => {
    const batch = Batch.make(running.entries.map((entry) => entry.request))
    // Suspended: what an instance throws is a failure of this batch, not the end of the dispatcher.
    return Effect.suspend(() => running.instance.execute(batch)).pipe(
      Effect.onExit((exit) => {
        settle(running, exit)
        load.set(running.instance, (load.get(running.instance) ?? 1) - 1)
        wake.openUnsafe()
        const own =
          Exit.isFailure(exit) && Cause.hasDies(exit.cause)
            ? Effect.logError(`Model '${model}' failed on instance ${running.instance.name}`, exit.cause)
            : Effect.void
        return defects.length === 0 ? own : Effect.andThen(own, logDefects)
      }),
      Effect.exit,
      Effect.uninterruptible,
    )
  }

  const settle = (running: Running, exit: Exit.Exit<Execution, InferenceError>) => {
    running.fiber = undefined
    const total = nanos() - running.startedAt
    const endedAt = running.startedAt + total
    if (Exit.isFailure(exit)) {
      for (const { request } of running.entries) {
        request.trace?.at("COMPUTE_START", running.startedAt)
        request.trace?.at("COMPUTE_END", endedAt)
      }
      const error = failureOf(exit.cause)
      for (const entry of running.entries) refuse(entry, "BACKEND", error)
      return
    }
    const { outcomes, inputDuration, outputDuration } = exit.value
    const inferDuration = exit.value.inferDuration ?? total - inputDuration - outputDuration
    const compute = { input: inputDuration, infer: inferDuration, output: outputDuration }
    const rows = running.entries.reduce((sum, { request }, index) => {
      const outcome = outcomes[index]
      return outcome !== undefined && Result.isSuccess(outcome) ? sum + request.rows : sum
    }, 0)
    // Before the replies: a caller that asks for statistics next finds its own request in them.
    if (rows > 0) statistics.executed(rows, compute, clock.currentTimeMillisUnsafe())
    for (const [index, entry] of running.entries.entries()) {
      if (entry.request.trace !== undefined) trace(entry.request.trace, compute, endedAt)
      const outcome = outcomes[index] ?? Result.fail(missing())
      if (Result.isFailure(outcome)) {
        refuse(entry, "BACKEND", outcome.failure)
      } else if (finish(entry)) {
        const elapsed = running.startedAt - entry.queuedAt + total
        statistics.succeeded(elapsed, elapsed - compute.input - compute.infer - compute.output, compute)
        if (entry.request.emit !== undefined)
          statistics.response(entry.responses)?.emptyResponse.add(nanos() - entry.respondedAt)
        answer(entry, outcome)
      }
    }
  }

  /** The parts of an execution, one behind the other up to its end. */
  const trace = (trace: Trace, { input, infer, output }: ComputeDurations, endedAt: number) => {
    trace.at("COMPUTE_START", endedAt - output - infer - input)
    trace.at("COMPUTE_INPUT_END", endedAt - output - infer)
    trace.at("COMPUTE_OUTPUT_START", endedAt - output)
    trace.at("COMPUTE_END", endedAt)
  }

  const failureOf = (cause: Cause.Cause<InferenceError>): InferenceError => {
    const failure = Cause.findError(cause)
    if (Result.isSuccess(failure)) return failure.success
    return Cause.hasInterruptsOnly(cause)
      ? stopping()
      : new ExecutionFailed({ message: `Failed to execute the request(s) for model '${model}'; its log says why` })
  }

  const missing = () => new ExecutionFailed({ message: `model '${model}' answered fewer requests than its batch held` })

  const stopping = () =>
    new Unavailable({
      message: "Server is stopping, scheduler for model has stopped accepting new inference requests",
    })

  const expired = (entry: Entry) => new DeadlineExceeded({ message: `${errorPrefix(entry.request)}Deadline Exceeded` })

  /** Sleeps until the earliest deadline of all, or until an earlier one comes in. */
  const deadlineWatch = Effect.gen(function* () {
    for (;;) {
      deadlineWake.closeUnsafe()
      const now = clock.currentTimeMillisUnsafe()
      nextDeadline = Infinity
      for (const entry of deadlines) {
        const deadline = entry.request.deadline ?? Infinity
        if (deadline <= now) refuse(entry, entry.running === undefined ? "REJECTED" : "CANCELED", expired(entry))
        else if (deadline < nextDeadline) nextDeadline = deadline
      }
      if (defects.length > 0) yield* logDefects
      const sleep = nextDeadline === Infinity ? Effect.never : Effect.sleep(nextDeadline - now)
      yield* Effect.raceFirst(deadlineWake.await, sleep)
    }
  })

  for (const instance of instances) instance.onStatusChange = () => wake.openUnsafe()
  yield* Effect.forkScoped(dispatcher, { startImmediately: true })
  yield* Effect.forkScoped(deadlineWatch, { startImmediately: true })
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      stopped = true
      for (const entry of queue.clear()) refuse(entry, "OTHER", stopping())
      return Scope.close(batches, Exit.void)
    }),
  )

  const scheduler: Scheduler = {
    submit,
    pending: () => queue.size,
    isReady: () => !stopped && instances.some((instance) => instance.status() === "available"),
  }
  return scheduler
})
