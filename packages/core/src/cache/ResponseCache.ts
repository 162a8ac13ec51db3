/**
 * A cache of responses, a stage in front of a model's scheduler. A request with a known key gets the stored response
 * without an execution, and equal requests in flight share one execution:
 *
 *   submit ─┬─ hit ────────────────────────────────────────────────────────► reply
 *           ├─ an equal request is in flight ─► joins it ────┐
 *           └─ miss ─► scheduler ─► response ─► store ───────┴─► reply to all waiting requests
 *                                   failure: to all waiting requests; nothing is stored. After a queue
 *                                   timeout, requests that joined later start again
 *
 * With a shared cache (CacheSettings.ts), a miss looks there before the scheduler, and a response is stored there too.
 *
 * A waiting request may leave at any time, by cancellation or by its deadline. The execution is cancelled when the last
 * one leaves. An equal request with another priority or queue timeout gets an execution in its own lane of the queue,
 * so that it waits no longer than it would alone; the first of these executions that succeeds answers all, and the
 * others are cancelled.
 */
import { constVoid } from "effect/Function"
import { type Clock, Effect, Result } from "effect"
import { requireInteger } from "../model/OptionChecks.ts"
import { AlarmClock } from "../scheduler/AlarmClock.ts"
import { Deadlines } from "../scheduler/Deadlines.ts"
import { DeadlineExceeded, type InferenceError, withMessage } from "../error/InferenceError.ts"
import { Flight, Flights, type WaitingRequest } from "./Flight.ts"
import * as RequestKey from "./RequestKey.ts"
import { type Cancel, errorPrefix, type Reply, type Request, type Response } from "../request/Request.ts"
import { CacheSettings, type SharedCache } from "./CacheSettings.ts"
import { copy, ResponseStore } from "./ResponseStore.ts"
import * as SharedResponses from "./SharedResponses.ts"
import { levelOf, policyOf, type Queueing, timeoutOf } from "../model/QueuePolicy.ts"
import type { Stage, Submit } from "../scheduler/SubmitPipeline.ts"
import type { FailureReason, ModelStatistics } from "../metrics/ModelStatistics.ts"
import * as MonotonicTime from "../request/MonotonicTime.ts"

/** Options of a model's response cache. */
export interface ResponseCacheOptions {
  /** Memory for responses and their keys, in bytes; the least recently used are evicted. Default 64 MiB. */
  readonly maxBytes?: number
  /**
   * Identifies what the model computes. Servers that share a cache in Redis (`--cache-config redis,…`) share responses
   * of models with the same name, version and revision, so it must change with the code and the weights. Models of a
   * repository have one. Default: the responses stay in this process.
   */
  readonly revision?: string
  /**
   * Names of the request's parameters that a response depends on, forwarded headers included. Default all but
   * `priority` and `timeout`. Parameters that the model does not see (ONNX files see none) never count.
   */
  readonly parameters?: ReadonlyArray<string>
}

export interface ResponseCacheStageOptions extends ResponseCacheOptions {
  /** Name of the model. */
  readonly model: string
  /** Version of the model. Default: no revision is shared. */
  readonly version?: string
  /** Whether a response may depend on more of a request than its inputs. */
  readonly readsRequest: boolean
  /** A number that changes whenever responses to equal requests may change. Default: they never do. */
  readonly epoch?: () => number
  readonly statistics: ModelStatistics
  /** The reason that a failed request counts under. Default: BACKEND, or OTHER for a model that is not ready. */
  readonly reasonOf?: (error: InferenceError) => FailureReason
  /** As declared; undefined if requests have neither priorities nor queue timeouts. */
  readonly queueing: Queueing | undefined
}

const defaultMaxBytes = 64 * 2 ** 20

/** @throws TypeError if an option is out of range */
export const check = (
  model: string,
  options: boolean | ResponseCacheOptions = false,
): ResponseCacheOptions | undefined => {
  if (options === false) return undefined
  if (options === true) return {}
  requireInteger(model, "responseCache.maxBytes", options.maxBytes ?? defaultMaxBytes, 1)
  return options
}

/** The cache as a stage of one model's pipeline; it empties the cache when the scope closes. */
export const make = Effect.fnUntraced(function* (options: ResponseCacheStageOptions) {
  const { maxBytes = defaultMaxBytes, shared } = yield* CacheSettings
  const cache = new ResponseCache({ maxBytes, ...options }, yield* AlarmClock.make, shared)
  yield* Effect.addFinalizer(() => Effect.sync(() => cache.close()))
  const stage: Stage = (next) => cache.before(next)
  return { stage, settled: cache.settled }
})

/** A reply that is due. */
interface DueReply {
  readonly waiting: WaitingRequest
  readonly outcome: Result.Result<Response, InferenceError>
}

class ResponseCache {
  readonly #options: ResponseCacheStageOptions
  readonly #clock: Clock.Clock
  readonly #deadlines: Deadlines<WaitingRequest>
  readonly #store: ResponseStore
  readonly #flights = new Flights()
  readonly #keyOf: (request: Request) => string
  readonly #laneOf: (request: Request) => string
  readonly #timeoutOf: (request: Request) => number
  readonly #shared: SharedResponses.SharedResponses | undefined
  #next: Submit = () => constVoid
  #isClosed = false

  constructor(options: ResponseCacheStageOptions, alarms: AlarmClock, shared: SharedCache | undefined) {
    this.#options = options
    this.#clock = alarms.clock
    this.#deadlines = new Deadlines(alarms, (waiting) => this.#expire(waiting))
    this.#store = new ResponseStore(options.maxBytes ?? defaultMaxBytes)
    this.#keyOf = RequestKey.make(options)
    this.#laneOf = lanes(options.queueing)
    this.#timeoutOf = timeouts(options.queueing)
    this.#shared = shared && SharedResponses.make(shared, options)
  }

  /** Completes once no request waits for the shared cache, within the time that a lookup may take. */
  get settled(): Effect.Effect<void> {
    return this.#shared?.settled ?? Effect.void
  }

  /** The cache in front of `next`, which takes the requests that it cannot answer. */
  before(next: Submit): Submit {
    this.#next = next
    return (request, reply) => this.#submit(request, reply)
  }

  /** Empties the cache; later requests go to the next stage. */
  close(): void {
    this.#isClosed = true
    this.#store.clear()
  }

  #submit(request: Request, reply: Reply): Cancel {
    if (this.#isClosed || isOfSequence(request) || this.#isExpired(request)) return this.#next(request, reply)
    const startedAt = this.#nanos()
    const key = this.#keyOf(request)
    const cached = this.#store.get(key)
    if (cached !== undefined) {
      const outcome = Result.succeed(copy(cached))
      const total = this.#nanos() - startedAt
      this.#options.statistics.hit(total, total, request.rows, this.#clock.currentTimeMillisUnsafe())
      reply(outcome)
      return constVoid
    }
    const flight = this.#flightOf(key, this.#laneOf(request))
    const waiting: WaitingRequest = { request, reply, startedAt, flight }
    flight.waiting.add(waiting)
    this.#deadlines.add(waiting)
    if (flight.waiting.size === 1) this.#begin(flight, request, this.#nanos() - startedAt)
    return () => void this.#leave(waiting)
  }

  /** The deadline of a request has passed. */
  #expire(waiting: WaitingRequest): void {
    if (!this.#leave(waiting)) return
    const message = `${errorPrefix(waiting.request)}Deadline Exceeded`
    waiting.reply(Result.fail(new DeadlineExceeded({ message })))
  }

  #nanos(): number {
    return Number(this.#clock.monotonicTimeNanosUnsafe())
  }

  #isExpired({ deadline }: Request): boolean {
    return deadline !== undefined && deadline <= MonotonicTime.millis(this.#clock)
  }

  /** The flight that an equal request has started, or a new one that has not begun. */
  #flightOf(key: string, lane: string): Flight {
    return this.#flights.get(key, lane) ?? new Flight(key, lane, this.#options.statistics)
  }

  /** Looks for the response in the shared cache, and executes the request if it is not there. */
  #begin(flight: Flight, request: Request, lookup: number): void {
    this.#flights.add(flight)
    const shared = this.#shared
    if (shared === undefined) return this.#execute(flight, request, lookup)
    const startedAt = this.#nanos()
    flight.isLookup = true
    flight.sharedKey = shared.keyOf(request)
    flight.cancel = shared.get(flight.sharedKey, (response) => {
      flight.isLookup = false
      const total = lookup + this.#nanos() - startedAt
      if (response === undefined) this.#execute(flight, request, total)
      else this.#found(flight, response, total)
    })
  }

  /** Answers all waiting requests with a response of the shared cache. */
  #found(flight: Flight, response: Response, lookup: number): void {
    this.#flights.remove(flight)
    const stored = copy(response)
    this.#store.set(flight.key, stored)
    const waiting = [...flight.waiting, ...this.#cancelOthers(flight.key)]
    flight.waiting.clear()
    const now = this.#nanos()
    const millis = this.#clock.currentTimeMillisUnsafe()
    for (const { startedAt, request } of waiting) {
      this.#options.statistics.hit(now - startedAt, lookup, request.rows, millis)
    }
    this.#reply(waiting.map((one) => ({ waiting: one, outcome: Result.succeed(copy(stored)) })))
  }

  /** Submits the request without its deadline: deadlines apply to the waiting requests, not to the execution. */
  #execute(flight: Flight, request: Request, lookup: number): void {
    let isOver = false
    const ended: Reply = (outcome) => {
      isOver = true
      this.#flights.remove(flight)
      if (Result.isFailure(outcome)) this.#fail(flight, request, outcome.failure)
      else this.#succeed(flight, outcome, lookup)
    }
    const cancel = this.#next({ ...request, deadline: undefined }, ended, flight.statistics)
    if (!isOver) flight.cancel = cancel
  }

  #succeed(
    { key, sharedKey, waiting }: Flight,
    outcome: Result.Success<Response, InferenceError>,
    lookup: number,
  ): void {
    const { statistics } = this.#options
    const insertedAt = this.#nanos()
    const stored = copy(outcome.success)
    this.#store.set(key, stored)
    if (sharedKey !== undefined) this.#shared?.set(sharedKey, stored)
    const now = this.#nanos()
    statistics.missed(lookup + now - insertedAt)
    const millis = this.#clock.currentTimeMillisUnsafe()
    const [first, ...rest] = waiting
    waiting.clear()
    const others = [...rest, ...this.#cancelOthers(key)]
    // Before the replies: a caller that reads the statistics next finds its own request in them.
    for (const { startedAt, request } of others) statistics.hit(now - startedAt, lookup, request.rows, millis)
    this.#reply([
      ...(first === undefined ? [] : [{ waiting: first, outcome }]),
      ...others.map((waiting) => ({ waiting, outcome: Result.succeed(copy(stored)) })),
    ])
  }

  /** Cancels the executions of equal requests in other lanes, and returns the requests that waited for them. */
  #cancelOthers(key: string): ReadonlyArray<WaitingRequest> {
    return this.#flights.take(key).flatMap((flight) => {
      const taken = [...flight.waiting]
      flight.waiting.clear()
      flight.statistics.end()
      flight.cancel()
      return taken
    })
  }

  #fail({ key, lane, waiting }: Flight, executed: Request, error: InferenceError): void {
    const now = this.#nanos()
    // After a queue timeout, a request that joined later may still wait: it starts again at the end of the queue, and
    // so waits for at most twice its timeout.
    const isLate = ({ request, startedAt }: WaitingRequest) =>
      request === executed || startedAt + this.#timeoutOf(request) <= now
    const late = error._tag === "QueueTimeout" ? [...waiting].filter(isLate) : [...waiting]
    const early = [...waiting].filter((one) => !late.includes(one))
    waiting.clear()
    this.#restart(key, lane, early)
    const { statistics, reasonOf = defaultReason } = this.#options
    for (const { startedAt } of late.slice(1)) statistics.failed(reasonOf(error), now - startedAt)
    this.#reply(
      late.map((waiting) => ({ waiting, outcome: Result.fail(withRequestId(error, executed, waiting.request)) })),
    )
  }

  /** Moves requests to another flight of their lane. */
  #restart(key: string, lane: string, requests: ReadonlyArray<WaitingRequest>): void {
    const [first] = requests
    if (first === undefined) return
    const flight = this.#flightOf(key, lane)
    for (const waiting of requests) {
      waiting.flight = flight
      flight.waiting.add(waiting)
    }
    this.#begin(flight, first.request, 0)
  }

  /** Calls all replies. An exception of one caller does not keep the others from their responses. */
  #reply(replies: ReadonlyArray<DueReply>): void {
    const defects: Array<unknown> = []
    for (const { waiting, outcome } of replies) {
      this.#deadlines.delete(waiting)
      try {
        waiting.reply(outcome)
      } catch (defect) {
        defects.push(defect)
      }
    }
    if (defects.length > 0) throw defects[0]
  }

  /**
   * Returns false if the request has its response already. The last request to leave cancels the execution, which
   * counts it.
   */
  #leave(waiting: WaitingRequest): boolean {
    const { flight } = waiting
    if (!flight.waiting.delete(waiting)) return false
    this.#deadlines.delete(waiting)
    // The scheduler counts a request that it has.
    if (flight.waiting.size > 0 || flight.isLookup) {
      this.#options.statistics.failed("CANCELED", this.#nanos() - waiting.startedAt)
    }
    if (flight.waiting.size > 0) return true
    this.#flights.remove(flight)
    flight.cancel()
    return true
  }
}

/** A model with state may respond differently to equal requests. */
const isOfSequence = ({ parameters }: Request): boolean => {
  const id = parameters["sequence_id"]
  return id !== undefined && id !== 0n && id !== ""
}

/** The error with the id of the caller's own request in place of that of the executed one. */
const withRequestId = (error: InferenceError, executed: Request, request: Request): InferenceError => {
  const prefix = errorPrefix(executed)
  if (executed === request || !error.message.startsWith(prefix)) return error
  return withMessage(error, errorPrefix(request) + error.message.slice(prefix.length))
}

const defaultReason = ({ _tag }: InferenceError): FailureReason =>
  _tag === "Unavailable" || _tag === "ModelNotReady" ? "OTHER" : "BACKEND"

/** How long a request may wait in its queue, in nanoseconds. */
const timeouts = (queueing: Queueing | undefined): ((request: Request) => number) =>
  queueing === undefined
    ? () => Infinity
    : ({ parameters }) => timeoutOf(policyOf(queueing, levelOf(queueing, parameters)), parameters)

/** The same text for requests that a queue treats alike. */
const lanes = (queueing: Queueing | undefined): ((request: Request) => string) => {
  if (queueing === undefined) return () => ""
  const timeout = timeouts(queueing)
  return (request) => `${levelOf(queueing, request.parameters)},${timeout(request)}`
}
