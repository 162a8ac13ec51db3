/**
 * Main thread's side of one worker thread with a handler, from its start to its exit: sends batches, receives outcomes
 * and responses, cancels batches, and stops the thread. Supervisor.ts of core starts a replacement.
 */
import type { Batch } from "@nereid/core/internal/batch/Batch"
import type { Definition } from "@nereid/core/internal/model/Definition"
import { DeclaredFailure, ExecutionFailed, type InferenceError, Unavailable, Unrecoverable } from "@nereid/core/Errors"
import { fromTag } from "@nereid/core/internal/error/InferenceError"
import type { Fields } from "@nereid/core/internal/model/Field"
import type { Request, Response } from "@nereid/core/internal/request/Request"
import type { BuiltInstance } from "@nereid/core/InstanceContext"
import type { ExecutionResult, Interrupt, Settle } from "@nereid/core/internal/instance/Instance"
import type { Supervised } from "@nereid/core/internal/instance/Supervisor"
import { constVoid } from "effect/Function"
import { Clock, Context, Deferred, Effect, Exit, Metric, Result } from "effect"
import { type ResourceLimits, Worker } from "node:worker_threads"
import { difference } from "./ModuleCheck.ts"
import { TensorBufferWriter, unpack } from "./TensorBuffer.ts"
import { type MetricMessage, ThreadMetrics } from "./ThreadMetrics.ts"
import * as WorkerLoadError from "./WorkerLoadError.ts"
import type {
  FromThread,
  OutcomeMessage,
  ResponseMessage,
  SequenceMessage,
  ThreadStart,
  ToThread,
} from "./ThreadProtocol.ts"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import * as MonotonicTime from "@nereid/core/internal/request/MonotonicTime"

export interface ThreadOptions {
  readonly definition: Definition<Fields, Fields>
  /** URL of the module. */
  readonly module: string
  readonly instance: BuiltInstance
  readonly startTimeout: number
  /**
   * Milliseconds that a cancelled batch may continue before its thread is terminated. The other times are also
   * milliseconds.
   */
  readonly cancelTimeout: number
  readonly stopTimeout: number
  /** Maximum JavaScript heap, in bytes; undefined for Node's limit. */
  readonly maxHeapBytes: number | undefined
  /** Node options; undefined for those of the process. */
  readonly execArgv: ReadonlyArray<string> | undefined
  readonly env: Readonly<Record<string, string>> | undefined
  /** Data for the module. */
  readonly data: unknown
}

/** Starts a thread. Must not be interrupted. If it fails, the thread has ended. */
export const start = Effect.fn("WorkerThread.start")(function* (options: ThreadOptions) {
  const context = yield* Effect.context<never>()
  const { definition, module } = options
  return yield* Effect.callback<WorkerThread, WorkerLoadError.WorkerLoadError>((resume) => {
    const fail = (reason: string) => resume(Effect.fail(WorkerLoadError.make(definition.name, module, reason)))
    let worker: Worker
    try {
      worker = spawn(options)
    } catch (error) {
      return fail(`the worker thread failed to start: ${errorMessage(error)}`)
    }
    let reason: string | undefined
    const end = (problem: string) => {
      reason = problem
      void worker.terminate()
    }
    const timer = setTimeout(
      () => end(`the worker thread was not ready after ${options.startTimeout} ms`),
      options.startTimeout,
    )
    const metrics = new ThreadMetrics(options.instance, Context.get(context, Metric.MetricRegistry))
    const measure = (message: MetricMessage) => {
      try {
        metrics.receive(message)
      } catch (error) {
        end(errorMessage(error))
      }
    }
    const onError = (error: unknown) => (reason ??= `its worker thread died: ${errorMessage(error)}`)
    const onExit = (code: number) => {
      clearTimeout(timer)
      metrics.release()
      fail(reason ?? `its worker thread exited with code ${code}`)
    }
    const onMessage = (message: FromThread) => {
      if (message._tag === "Log") return log(context, message)
      if (message._tag === "Metric" || message._tag === "Measured") return measure(message)
      if (message._tag === "LoadFailed") return end(message.message)
      if (message._tag !== "Ready") return
      const different = difference(definition, message)
      if (different !== undefined) return end(different)
      clearTimeout(timer)
      worker.off("error", onError).off("exit", onExit).off("message", onMessage)
      resume(Effect.succeed(new WorkerThread(options, worker, context, metrics, message.decoupled)))
    }
    worker.once("error", onError).once("exit", onExit).on("message", onMessage)
  })
}, Effect.uninterruptible)

// `import.meta.resolve` goes through the package's exports: the same line works from source and when built.
const spawn = ({ instance, module, maxHeapBytes, execArgv, env, data }: ThreadOptions): Worker => {
  const workerData: ThreadStart = { module, instance, data }
  return new Worker(new URL(import.meta.resolve("@nereid/worker/internal/thread")), {
    name: instance.name,
    workerData,
    ...(maxHeapBytes !== undefined && { resourceLimits: heapLimits(maxHeapBytes) }),
    ...(execArgv !== undefined && { execArgv: [...execArgv] }),
    ...(env !== undefined && { env: { ...process.env, ...env } }),
  })
}

/**
 * Both generations of V8's heap. At the limit of the old one Node ends the thread, and allows it 16 MiB more until it
 * has; beyond them V8 aborts the process. One collection may move a whole young generation to the old one: half-spaces
 * and objects that are large, a third of its size each. So 24 MiB of it fit, and its default of 96 MiB does not.
 */
const heapLimits = (bytes: number): ResourceLimits => {
  const megabytes = Math.ceil(bytes / 2 ** 20)
  const young = Math.min(24, Math.floor(megabytes / 4))
  return { maxYoungGenerationSizeMb: young, maxOldGenerationSizeMb: megabytes - young }
}

/** Logs with the logger of the fiber that started the thread. */
const log = (context: Context.Context<never>, { level, message }: Extract<FromThread, { _tag: "Log" }>) =>
  void Effect.runForkWith(context)(Effect.logWithLevel(level)(message))

interface InFlight {
  readonly batch: Batch
  readonly settle: Settle
  readonly inputDuration: number
  timer: NodeJS.Timeout | undefined
}

export class WorkerThread implements Supervised {
  readonly exited = Deferred.makeUnsafe<string>()
  /** Whether the module's model is decoupled: any number of responses to a request. */
  readonly decoupled: boolean
  readonly #options: ThreadOptions
  readonly #worker: Worker
  readonly #context: Context.Context<never>
  readonly #metrics: ThreadMetrics
  readonly #inFlight = new Map<number, InFlight>()
  #next = 0
  #state: "running" | "stopping" | "exited" = "running"
  #wasEnded = false

  constructor(
    options: ThreadOptions,
    worker: Worker,
    context: Context.Context<never>,
    metrics: ThreadMetrics,
    decoupled: boolean,
  ) {
    this.#options = options
    this.#metrics = metrics
    this.decoupled = decoupled
    this.#worker = worker
    this.#context = context
    let reason: string | undefined
    worker.on("error", (error: unknown) => (reason ??= errorMessage(error)))
    worker.on("messageerror", (error: unknown) => (reason ??= errorMessage(error)))
    worker.once("exit", (code) => this.#exit(reason ?? `exit code ${code}`))
    worker.on("message", (message: FromThread) => this.#receive(message))
    // Without batches in flight, the thread does not keep the process alive.
    worker.unref()
  }

  get isAlive(): boolean {
    return this.#state !== "exited"
  }

  get wasEnded(): boolean {
    return this.#wasEnded
  }

  execute(batch: Batch, settle: Settle): Interrupt {
    if (this.#state !== "running") {
      settle(Exit.fail(this.#unavailable()))
      return constVoid
    }
    const startedAt = performance.now()
    const number = this.#next++
    const parcel = new TensorBufferWriter()
    const clock = Context.get(this.#context, Clock.Clock)
    const now = MonotonicTime.millis(clock)
    const requests = batch.requests.map(
      ({ id, inputs, rows, parameters, deadline, requestedOutputs = [], sequence }) => ({
        id,
        inputs: inputs.map((tensor) => tensor && parcel.add(tensor)),
        rows,
        parameters,
        remaining: deadline === undefined ? undefined : deadline - now,
        requestedOutputs,
        sequence: sequence && positionOf(sequence),
      }),
    )
    const buffer = parcel.end()
    this.#send({ _tag: "Execute", batch: number, requests, buffer }, [buffer])
    if (this.#inFlight.size === 0) this.#worker.ref()
    const inputDuration = (performance.now() - startedAt) * 1e6
    this.#inFlight.set(number, { batch, settle, inputDuration, timer: undefined })
    return () => this.#cancel(number)
  }

  /**
   * Cancels a batch. If it does not end in time, the thread is terminated, because running code cannot be interrupted.
   */
  #cancel(number: number): void {
    const entry = this.#inFlight.get(number)
    if (entry === undefined || entry.timer !== undefined || this.#state === "exited") return
    this.#send({ _tag: "Cancel", batch: number })
    entry.timer = setTimeout(() => {
      this.#wasEnded = true
      void this.#worker.terminate()
    }, this.#options.cancelTimeout)
  }

  /**
   * Tells the thread to exit and waits for it; terminates it after a timeout. A thread that does not respond to the
   * cancellation of its batches would not respond to this either: it is terminated at once. Harmless if the thread has
   * exited.
   */
  get stop(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.#state === "running") {
        this.#state = "stopping"
        this.#worker.ref()
        if (this.#ignoresCancellation) {
          this.#wasEnded = true
          void this.#worker.terminate()
        } else {
          this.#send({ _tag: "Stop" })
          const timer = setTimeout(() => void this.#worker.terminate(), this.#options.stopTimeout)
          this.#worker.once("exit", () => clearTimeout(timer))
        }
      }
      return Effect.asVoid(Deferred.await(this.exited))
    }).pipe(Effect.uninterruptible)
  }

  /** Whether it has batches, and all of them are cancelled. The thread answers a cancellation in its next turn. */
  get #ignoresCancellation(): boolean {
    return this.#inFlight.size > 0 && Array.from(this.#inFlight.values()).every(({ timer }) => timer !== undefined)
  }

  #send(message: ToThread, transfer: ReadonlyArray<ArrayBuffer> = []): void {
    this.#worker.postMessage(message, transfer)
  }

  #receive(message: FromThread): void {
    switch (message._tag) {
      case "Log":
        return log(this.#context, message)
      case "Metric":
      case "Measured":
        return this.#metrics.receive(message)
      case "Response":
        return this.#respond(message.batch, unpacked(message.buffer, message.response))
      case "Outcomes": {
        const startedAt = performance.now()
        const entry = this.#take(message.batch)
        if (entry === undefined) return
        const outcomes = message.outcomes.map((outcome) => this.#outcome(message.buffer, outcome))
        const outputDuration = (performance.now() - startedAt) * 1e6
        return entry.settle(Exit.succeed({ outcomes, inputDuration: entry.inputDuration, outputDuration }))
      }
      default:
    }
  }

  #outcome(buffer: ArrayBuffer, outcome: OutcomeMessage): ExecutionResult["outcomes"][number] {
    if (outcome._tag === "Succeeded") return Result.succeed(unpacked(buffer, outcome.response))
    if (outcome._tag === "Failed") return Result.fail(new DeclaredFailure({ ...outcome, error: undefined }))
    const { tag, message, unrecoverable, retryAfter } = outcome
    if (unrecoverable) return Result.fail(new Unrecoverable({ message }))
    return Result.fail(fromTag(tag, message, retryAfter) ?? new ExecutionFailed({ message }))
  }

  /**
   * Passes on one response of a decoupled model, whose batches are one request. The next response is requested once it
   * is taken.
   */
  #respond(number: number, response: Response): void {
    const request: Request | undefined = this.#inFlight.get(number)?.batch.requests[0]
    if (request?.emit === undefined) return
    const fiber = Effect.runForkWith(this.#context)(request.emit(response))
    fiber.addObserver((exit) => {
      if (!this.#inFlight.has(number) || this.#state === "exited") return
      if (Exit.isSuccess(exit)) this.#send({ _tag: "Resume", batch: number })
      else this.#cancel(number)
    })
  }

  #take(number: number): InFlight | undefined {
    const entry = this.#inFlight.get(number)
    if (entry === undefined) return undefined
    this.#inFlight.delete(number)
    clearTimeout(entry.timer)
    if (this.#inFlight.size === 0 && this.#state === "running") this.#worker.unref()
    return entry
  }

  #exit(reason: string): void {
    this.#state = "exited"
    this.#metrics.release()
    const cause = this.#wasEnded ? "a cancelled batch did not end" : reason
    for (const number of this.#inFlight.keys()) this.#take(number)?.settle(Exit.fail(this.#died(cause)))
    Deferred.doneUnsafe(this.exited, Effect.succeed(cause))
  }

  #died(reason: string): InferenceError {
    const { name } = this.#options.definition
    return new ExecutionFailed({
      message: `the worker thread of model '${name}' died while it had this batch: ${reason}`,
    })
  }

  #unavailable(): InferenceError {
    return new Unavailable({ message: `the worker thread of model '${this.#options.definition.name}' is not running` })
  }
}

const unpacked = (buffer: ArrayBuffer, { outputs, ...others }: ResponseMessage): Response => ({
  ...others,
  outputs: outputs.map((tensor) => tensor && unpack(buffer, tensor)),
})

const positionOf = ({ id, isStart, isEnd, isReady }: SequenceMessage): SequenceMessage => ({
  id,
  isStart,
  isEnd,
  isReady,
})
