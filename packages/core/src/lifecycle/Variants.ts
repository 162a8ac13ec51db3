/**
 * Running models by key, of which only some are loaded at a time: a request loads the one that it asks, and waits for that with
 * those that ask the same; where there are as many as may be, the one that has been idle for longest goes. What they are, and
 * which one a request asks, is Family.ts's.
 *
 *   submit ─► loaded ─────────────────────────────────► its model
 *         ├─► being loaded: waits for it  ─► is there ──┘
 *         │                               └─ fails: what it has failed with, for all who wait
 *         └─► not there ─► room, or one that is idle goes ─► is loaded
 *                       └─ all are in use: QueueFull
 */
import { Cause, Clock, Deferred, Effect, Exit, FiberSet, Latch, Result, Scope } from "effect"
import type { CallCycleDetector } from "../request/CallCycleDetector.ts"
import {
  DeadlineExceeded,
  ExecutionFailed,
  type InferenceError,
  isInferenceError,
  QueueFull,
} from "../error/InferenceError.ts"
import type { Unrecoverable } from "../error/InferenceError.ts"
import { type Cancel, errorPrefix, type Reply, type Request } from "../request/Request.ts"
import * as Deadlines from "../scheduler/Deadlines.ts"
import { stopping } from "../scheduler/RunningBatch.ts"
import type { Statistics } from "../metrics/ModelStatistics.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import { reason } from "./Unavailable.ts"

export interface VariantsOptions<R> {
  /** Name of the model, for messages. */
  readonly model: string
  /** Loaded, or being loaded, at a time. */
  readonly capacity: number
  /** Milliseconds after which one that nobody asks goes. */
  readonly idleTimeToLive: number
  /** Requests that wait for one to be loaded. */
  readonly maxWaiting: number
  /** Counts requests that reach none of them. */
  readonly statistics: Statistics
  /** Waits for the variant that it asks. */
  readonly asker: CallCycleDetector
  readonly load: (key: string) => Effect.Effect<RunningModel, unknown, R | Scope.Scope>
}

export interface Variants {
  readonly submit: (key: string, request: Request, reply: Reply) => Cancel
  /** Requests that no instance has yet. */
  readonly pending: () => number
  /** Completes once every request that was accepted has ended. */
  readonly drained: Effect.Effect<void>
  readonly isReady: () => boolean
  /** Waits for the failure of one of them that makes all of no use. */
  readonly unrecoverable: Effect.Effect<Unrecoverable>
}

interface Variant {
  readonly key: string
  readonly scope: Scope.Closeable
  /** Those who ask it while it is being loaded, the first one first. */
  readonly waiting: Set<Waiter>
  model: RunningModel | undefined
  unanswered: number
  /** Milliseconds of the clock. */
  usedAt: number
}

interface Waiter {
  readonly request: Request
  readonly reply: Reply
  readonly variant: Variant
  /** Takes the request back from the model that has it. */
  cancel: Cancel | undefined
  isOver: boolean
}

export const make = Effect.fnUntraced(function* <R>(options: VariantsOptions<R>) {
  const { model: name, statistics, asker } = options
  const scope = yield* Scope.Scope
  const clock = yield* Clock.Clock
  const fibers = yield* FiberSet.makeRuntime<R, void, never>()
  const fork = (effect: Effect.Effect<void, never, R>) => void fibers(effect)
  const now = () => clock.currentTimeMillisUnsafe()
  /** In the order of their loads. */
  const variants = new Map<string, Variant>()
  /** What goes, and still has its memory. */
  const closing = new Set<Deferred.Deferred<void>>()
  const unrecoverable = Deferred.makeUnsafe<Unrecoverable>()
  const drained = Latch.makeUnsafe(true)
  let unanswered = 0
  let isStopped = false
  let isLost = false

  const end = (waiter: Waiter): boolean => {
    if (waiter.isOver) return false
    waiter.isOver = true
    const { variant } = waiter
    variant.waiting.delete(waiter)
    deadlines.delete(waiter)
    variant.unanswered -= 1
    variant.usedAt = now()
    unanswered -= 1
    if (unanswered === 0) drained.openUnsafe()
    return true
  }

  const refuse = (waiter: Waiter, error: InferenceError) => {
    if (!end(waiter)) return
    statistics.failed("REJECTED", 0)
    waiter.reply(Result.fail(error))
  }

  const deadlines = yield* Deadlines.make<Waiter>((waiter) =>
    refuse(waiter, new DeadlineExceeded({ message: `${errorPrefix(waiter.request)}Deadline Exceeded` })),
  )

  /** The model is there. */
  const ask = (waiter: Waiter, model: RunningModel) => {
    const refusal = model.asker && asker.begin(model.asker)
    if (refusal !== undefined) return refuse(waiter, refusal)
    const leave = () => {
      if (model.asker !== undefined) asker.end(model.asker)
    }
    const cancel = model.submit(waiter.request, (outcome) => {
      leave()
      if (end(waiter)) waiter.reply(outcome)
    })
    waiter.cancel = () => {
      leave()
      cancel()
    }
  }

  const unload = (variant: Variant) => {
    variants.delete(variant.key)
    const over = Deferred.makeUnsafe<void>()
    closing.add(over)
    const log = (cause: Cause.Cause<never>) =>
      Effect.logError(`${print(name, variant.key)} has failed as it ended`, cause)
    const close = Effect.catchCause(Scope.close(variant.scope, Exit.void), log)
    const done = Effect.sync(() => {
      closing.delete(over)
      Deferred.doneUnsafe(over, Effect.void)
    })
    fork(Effect.ensuring(close, done))
  }

  /** Takes its memory back once nobody has asked it for so long. */
  const idle = (variant: Variant) =>
    Effect.gen(function* () {
      for (;;) {
        const left = variant.usedAt + options.idleTimeToLive - now()
        if (variant.unanswered === 0 && left <= 0) break
        yield* Effect.sleep(variant.unanswered === 0 ? left : options.idleTimeToLive)
      }
      if (variants.get(variant.key) === variant) unload(variant)
    })

  const load = Effect.fnUntraced(function* (variant: Variant) {
    // What goes for it, above all.
    yield* Effect.forEach(closing, (over) => Deferred.await(over), { discard: true })
    const exit = yield* Effect.exit(Scope.provide(options.load(variant.key), variant.scope))
    if (Exit.isFailure(exit)) {
      yield* Scope.close(variant.scope, exit)
      variants.delete(variant.key)
      const error = failure(name, variant.key, exit.cause)
      // What is one of Errors is an answer to its caller, as to a key that nobody knows.
      if (!isInferenceError(Cause.squash(exit.cause))) yield* Effect.logWarning(error.message)
      for (const waiter of variant.waiting) refuse(waiter, error)
      return
    }
    variant.model = exit.value
    variant.usedAt = now()
    const waiting = [...variant.waiting]
    variant.waiting.clear()
    for (const waiter of waiting) {
      deadlines.delete(waiter)
      ask(waiter, exit.value)
    }
    const lost = exit.value.unrecoverable
    if (lost !== undefined) {
      const told = Effect.map(lost, (error) => {
        isLost = true
        Deferred.doneUnsafe(unrecoverable, Effect.succeed(error))
      })
      yield* Effect.forkIn(told, variant.scope)
    }
    if (options.idleTimeToLive !== Infinity) yield* Effect.forkIn(idle(variant), variant.scope)
  })

  /** A new one that is yet to be loaded, if there may be one. */
  const begin = (key: string): Variant | undefined => {
    if (variants.size >= options.capacity) {
      const idlest = variants
        .values()
        .filter(({ model, unanswered }) => model !== undefined && unanswered === 0)
        .reduce((one: Variant | undefined, other) => (one && one.usedAt <= other.usedAt ? one : other), undefined)
      if (idlest === undefined) return undefined
      unload(idlest)
    }
    const variant: Variant = {
      key,
      scope: Scope.forkUnsafe(scope),
      waiting: new Set(),
      model: undefined,
      unanswered: 0,
      usedAt: now(),
    }
    variants.set(key, variant)
    return variant
  }

  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isStopped = true
      for (const { waiting } of variants.values()) for (const waiter of waiting) refuse(waiter, stopping())
    }),
  )

  const refused = (reply: Reply, error: InferenceError): Cancel => {
    statistics.failed("REJECTED", 0)
    reply(Result.fail(error))
    return () => {}
  }

  const variantsService: Variants = {
    submit: (key, request, reply) => {
      if (isStopped) return refused(reply, stopping())
      const known = variants.get(key)
      const variant = known ?? begin(key)
      if (variant === undefined) {
        const message = `${errorPrefix(request)}all ${options.capacity} variants of model '${name}' that may be loaded are in use`
        return refused(reply, new QueueFull({ message }))
      }
      if (variant.waiting.size >= options.maxWaiting) {
        return refused(reply, new QueueFull({ message: `${errorPrefix(request)}Exceeds maximum queue size` }))
      }
      const waiter: Waiter = { request, reply, variant, cancel: undefined, isOver: false }
      variant.unanswered += 1
      if (unanswered === 0) drained.closeUnsafe()
      unanswered += 1
      if (variant.model === undefined) {
        variant.waiting.add(waiter)
        deadlines.add(waiter)
      } else ask(waiter, variant.model)
      // Who waits is there: the load may have ended before this returns.
      if (known === undefined) fork(load(variant))
      return () => {
        if (end(waiter)) waiter.cancel?.()
      }
    },
    pending: () => {
      let pending = 0
      for (const { waiting, model } of variants.values()) pending += waiting.size + (model?.pending() ?? 0)
      return pending
    },
    drained: drained.await,
    isReady: () => !isStopped && !isLost,
    unrecoverable: Deferred.await(unrecoverable),
  }
  return variantsService
})

const print = (model: string, key: string): string =>
  key === "" ? `model '${model}'` : `variant '${key}' of model '${model}'`

const failure = (model: string, key: string, cause: Cause.Cause<unknown>): InferenceError => {
  const error = Cause.squash(cause)
  if (isInferenceError(error)) return error
  return new ExecutionFailed({ message: `${print(model, key)} cannot be loaded: ${reason(cause)}` })
}
