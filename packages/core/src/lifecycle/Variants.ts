/**
 * Models that requests load on demand: a source of the life cycle (Lifecycle.ts). A limited number of variants, by key,
 * is loaded at a time. A request loads its variant, or waits for a load in progress. If there is no capacity, the least
 * recently used idle variant is unloaded. Family.ts defines the variants and selects one for each request.
 *
 *   submit ─► ready ───────────────────────────────► its model
 *         ├─► loading: waits  ─► ready ──────────────┘
 *         │                   └─ failed: the failure, for all that wait
 *         └─► not there ─► room, or an idle one is unloaded ─► loading
 *                       └─ all are in use: QueueFull
 */
import { Cause, Deferred, Effect, Exit, FiberSet, Result, Scope } from "effect"
import { constVoid } from "effect/Function"
import { causeMessage } from "../error/CauseMessage.ts"
import {
  DeadlineExceeded,
  ExecutionFailed,
  type InferenceError,
  isInferenceError,
  QueueFull,
  type Unrecoverable,
} from "../error/InferenceError.ts"
import type { ModelStatistics } from "../metrics/ModelStatistics.ts"
import type { CallCycleDetector } from "../request/CallCycleDetector.ts"
import { type Cancel, errorPrefix, type Reply, type Request } from "../request/Request.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import { AlarmClock } from "../scheduler/AlarmClock.ts"
import { Deadlines, type PendingRequest } from "../scheduler/Deadlines.ts"
import { OpenRequests } from "../running/OpenRequests.ts"
import { stopping } from "../error/Refusal.ts"
import { KeyedLock } from "./KeyedLock.ts"
import { Lifecycle } from "./Lifecycle.ts"
import { ModelVersion } from "./ModelVersion.ts"
import * as Retirement from "./Retirement.ts"
import * as MonotonicTime from "../request/MonotonicTime.ts"

export interface VariantsOptions<R> {
  /** Name of the model, for messages. */
  readonly model: string
  /** Variants that are loaded, or being loaded, at a time. */
  readonly capacity: number
  /** Milliseconds after which an idle variant is unloaded. */
  readonly idleTimeToLive: number
  /** Requests that may wait for one variant to be loaded. */
  readonly maxWaiting: number
  /** Counts requests that reach no variant. */
  readonly statistics: ModelStatistics
  /** Waits for the variant that it calls. */
  readonly cycles: CallCycleDetector
  readonly load: (key: string) => Effect.Effect<RunningModel, unknown, R | Scope.Scope>
}

interface Variant {
  readonly key: string
  readonly version: ModelVersion
  /** Requests that wait for its load, the first one first. */
  readonly waiting: Set<Waiter>
  openRequests: number
  /** Milliseconds of the clock. */
  usedAt: number
}

interface Waiter extends PendingRequest<Waiter> {
  readonly reply: Reply
  readonly variant: Variant
  /** Cancels the request in the model that has it. */
  cancel: Cancel | undefined
  isOver: boolean
}

/** All variants are unloaded at the end of the scope, and requests that wait are refused. */
export const make = Effect.fnUntraced(function* <R>(options: VariantsOptions<R>) {
  const fibers = yield* FiberSet.makeRuntime<R, void, never>()
  const variants = new Variants<R>(options, {
    alarms: yield* AlarmClock.make,
    lifecycle: new Lifecycle(yield* Scope.Scope, new KeyedLock()),
    fork: (effect) => void fibers(effect),
  })
  yield* Effect.addFinalizer(() => Effect.sync(() => variants.stop()))
  return variants
})

interface VariantsRuntime<R> {
  readonly alarms: AlarmClock
  readonly lifecycle: Lifecycle
  readonly fork: (effect: Effect.Effect<void, never, R>) => void
}

export class Variants<R = never> {
  readonly #options: VariantsOptions<R>
  readonly #runtime: VariantsRuntime<R>
  /** In the order of their loads. */
  readonly #variants = new Map<string, Variant>()
  /** Variants that are being unloaded and still hold memory. Each holds the lock of its key. */
  readonly #unloading = new Set<Variant>()
  readonly #unrecoverable = Deferred.makeUnsafe<Unrecoverable>()
  readonly #deadlines: Deadlines<Waiter>
  readonly #openRequests = new OpenRequests()
  #isStopped = false
  #isUnrecoverable = false

  constructor(options: VariantsOptions<R>, runtime: VariantsRuntime<R>) {
    this.#options = options
    this.#runtime = runtime
    this.#deadlines = new Deadlines(runtime.alarms, (waiter) => this.#expire(waiter))
  }

  submit(key: string, request: Request, reply: Reply): Cancel {
    const { capacity, maxWaiting, model } = this.#options
    if (this.#isStopped) return this.#refused(reply, stopping())
    const known = this.#variants.get(key)
    const variant = known ?? this.#begin(key)
    if (variant === undefined) {
      const message = `${errorPrefix(request)}all ${capacity} variants of model '${model}' that fit its capacity are in use`
      return this.#refused(reply, new QueueFull({ message }))
    }
    if (variant.waiting.size >= maxWaiting) {
      return this.#refused(reply, new QueueFull({ message: `${errorPrefix(request)}Exceeds maximum queue size` }))
    }
    const waiter: Waiter = { request, reply, variant, cancel: undefined, isOver: false }
    variant.openRequests += 1
    this.#openRequests.begin()
    const { running } = variant.version
    if (running === undefined) {
      variant.waiting.add(waiter)
      this.#deadlines.add(waiter)
    } else this.#call(waiter, running)
    // Its first request waits already: the load may end before this returns.
    if (known === undefined) this.#runtime.fork(this.#load(variant))
    return () => {
      if (this.#end(waiter)) waiter.cancel?.()
    }
  }

  /** Requests that no instance has yet. */
  pending(): number {
    let pending = 0
    for (const { waiting, version } of this.#variants.values()) {
      pending += waiting.size + (version.running?.life.pending() ?? 0)
    }
    return pending
  }

  isReady(): boolean {
    return !this.#isStopped && !this.#isUnrecoverable
  }

  /** Completes once every accepted request has ended. */
  get drained(): Effect.Effect<void> {
    return this.#openRequests.drained
  }

  /** Waits for the failure of a variant that makes all of them useless. */
  get unrecoverable(): Effect.Effect<Unrecoverable> {
    return Deferred.await(this.#unrecoverable)
  }

  /** Rejects all pending and future requests. */
  stop(): void {
    this.#isStopped = true
    for (const { waiting } of this.#variants.values()) for (const waiter of waiting) this.#refuse(waiter, stopping())
  }

  get #now(): number {
    return MonotonicTime.millis(this.#runtime.alarms.clock)
  }

  /** Adds a new variant to load; undefined if there is no capacity. */
  #begin(key: string): Variant | undefined {
    if (this.#variants.size >= this.#options.capacity) {
      const leastRecentlyUsed = this.#variants
        .values()
        .filter(({ version, openRequests }) => version.state === "ready" && openRequests === 0)
        .reduce((one: Variant | undefined, other) => (one && one.usedAt <= other.usedAt ? one : other), undefined)
      if (leastRecentlyUsed === undefined) return undefined
      this.#unload(leastRecentlyUsed)
    }
    const version = new ModelVersion({ name: this.#options.model, version: key, origin: "code" })
    const variant: Variant = { key, version, waiting: new Set(), openRequests: 0, usedAt: this.#now }
    this.#variants.set(key, variant)
    return variant
  }

  #load(variant: Variant): Effect.Effect<void, never, R> {
    const { key, version, waiting } = variant
    const { lifecycle } = this.#runtime
    // Waits for unloading variants, which still hold memory, such as the one evicted for this one.
    const keys = [key, ...[...this.#unloading].map((unloading) => unloading.key)]
    return Effect.gen({ self: this }, function* () {
      const exit = yield* Effect.exit(lifecycle.change(keys, lifecycle.load([version], this.#build(variant))))
      if (Exit.isFailure(exit)) {
        // Interrupted while it waited.
        if (version.state === "wanted") version.end()
        this.#variants.delete(key)
        const error = this.#failure(key, exit.cause)
        // One of Errors is an answer to its caller, as for an unknown key.
        if (!isInferenceError(Cause.squash(exit.cause))) yield* Effect.logWarning(error.message)
        for (const waiter of waiting) this.#refuse(waiter, error)
        return
      }
      const { built, scope } = exit.value
      version.ready(built, scope)
      variant.usedAt = this.#now
      const ready = [...waiting]
      waiting.clear()
      for (const waiter of ready) {
        this.#deadlines.delete(waiter)
        this.#call(waiter, built)
      }
    })
  }

  /** The model, watched as long as it is loaded. */
  #build(variant: Variant): Effect.Effect<RunningModel, unknown, R | Scope.Scope> {
    return Effect.gen({ self: this }, function* () {
      const model = yield* this.#options.load(variant.key)
      const { unrecoverable } = model.life
      if (unrecoverable !== undefined) {
        const lose = Effect.map(unrecoverable, (error) => {
          this.#isUnrecoverable = true
          Deferred.doneUnsafe(this.#unrecoverable, Effect.succeed(error))
        })
        yield* Effect.forkScoped(lose)
      }
      if (this.#options.idleTimeToLive !== Infinity) yield* Effect.forkScoped(this.#unloadIdle(variant))
      return model
    })
  }

  /** Unloads it once no request has reached it for the time to live. */
  #unloadIdle(variant: Variant): Effect.Effect<void> {
    const { idleTimeToLive } = this.#options
    return Effect.gen({ self: this }, function* () {
      for (;;) {
        const left = variant.usedAt + idleTimeToLive - this.#now
        if (variant.openRequests === 0 && left <= 0) break
        yield* Effect.sleep(variant.openRequests === 0 ? left : idleTimeToLive)
      }
      if (this.#variants.get(variant.key) === variant) this.#unload(variant)
    })
  }

  #unload(variant: Variant): void {
    const { key, version } = variant
    this.#variants.delete(key)
    this.#unloading.add(variant)
    version.drain()
    const end = Effect.ensuring(
      Retirement.end(version, this.#print(key)),
      Effect.sync(() => this.#unloading.delete(variant)),
    )
    // A refusal means that the server stops, which ends the variant with the scope.
    this.#runtime.fork(Effect.ignore(this.#runtime.lifecycle.change([key], end)))
  }

  /** Passes a request on to the model of its variant. */
  #call(waiter: Waiter, { calls }: RunningModel): void {
    const { cycles } = this.#options
    const refusal = calls.cycles && cycles.begin(calls.cycles)
    if (refusal !== undefined) return this.#refuse(waiter, refusal)
    const leave = () => {
      if (calls.cycles !== undefined) cycles.end(calls.cycles)
    }
    const cancel = calls.submit(waiter.request, (outcome) => {
      leave()
      if (this.#end(waiter)) waiter.reply(outcome)
    })
    waiter.cancel = () => {
      leave()
      cancel()
    }
  }

  #expire(waiter: Waiter): void {
    this.#refuse(waiter, new DeadlineExceeded({ message: `${errorPrefix(waiter.request)}Deadline Exceeded` }))
  }

  #refused(reply: Reply, error: InferenceError): Cancel {
    this.#options.statistics.failed("REJECTED", 0)
    reply(Result.fail(error))
    return constVoid
  }

  #refuse(waiter: Waiter, error: InferenceError): void {
    if (!this.#end(waiter)) return
    this.#options.statistics.failed("REJECTED", 0)
    waiter.reply(Result.fail(error))
  }

  /** Ends a waiter; returns false if it had ended before. */
  #end(waiter: Waiter): boolean {
    if (waiter.isOver) return false
    waiter.isOver = true
    const { variant } = waiter
    variant.waiting.delete(waiter)
    this.#deadlines.delete(waiter)
    variant.openRequests -= 1
    variant.usedAt = this.#now
    this.#openRequests.end()
    return true
  }

  #failure(key: string, cause: Cause.Cause<unknown>): InferenceError {
    const error = Cause.squash(cause)
    if (isInferenceError(error)) return error
    const [prefix, reason] = [`cannot load ${this.#print(key)}`, causeMessage(cause)]
    // The errors of files and workers already name the model.
    return new ExecutionFailed({ message: reason.startsWith(prefix) ? reason : `${prefix}: ${reason}` })
  }

  #print(key: string): string {
    return key === "" ? `model '${this.#options.model}'` : `variant '${key}' of model '${this.#options.model}'`
  }
}
