/**
 * Answers that a model has given before, in front of its scheduler: a request that asks the same gets the same, without an
 * execution. Requests that ask the same at the same time are executed once:
 *
 *   submit ─┬─ known: hit ─────────────────────────────────────────────────► reply
 *           ├─ asked by another one just now ─► waits along ─┐
 *           └─ miss ─► scheduler ─► answer ─► store ─────────┴─► reply to all who wait
 *                                   failure: to all who wait, and nothing is stored
 *
 * Who waits may leave at any time, by cancelling or by its deadline; the execution is taken back when all have. Who asks the
 * same by another priority, or for another time in the queue, waits for an execution of its own there, as it would alone; the
 * first of them that is done answers all, and the others are taken back.
 */
import { constVoid } from "effect/Function"
import { Clock, Effect, Result } from "effect"
import { requireInteger } from "../model/Batching.ts"
import { AlarmClock } from "../scheduler/AlarmClock.ts"
import { Deadlines } from "../scheduler/Deadlines.ts"
import * as Digest from "./Digest.ts"
import { DeadlineExceeded, type InferenceError, withMessage } from "../error/InferenceError.ts"
import { type Cancel, errorPrefix, type Reply, type Request, type Response } from "../request/Request.ts"
import { copy, ResponseStore } from "./ResponseStore.ts"
import { levelOf, policyOf, type Queueing, timeoutOf } from "../model/QueuePolicy.ts"
import type { Stage, Submit } from "../scheduler/SubmitPipeline.ts"
import type { RequestStatistics, ModelStatistics } from "../metrics/ModelStatistics.ts"

export interface ResponseCacheOptions {
  /** Of answers, with what it takes to keep them; those not asked for the longest leave first. Default 64 MiB. */
  readonly maxBytes?: number
  /**
   * Names of the request's parameters that an answer depends on, forwarded headers among them. Default all but `priority` and
   * `timeout`. Those that no model sees (ONNX files do not) never count.
   */
  readonly parameters?: ReadonlyArray<string>
}

export interface CacheOptions extends ResponseCacheOptions {
  /** Name of the model, for messages. */
  readonly model: string
  /** Whether an answer may depend on more of a request than its inputs. */
  readonly readsRequest: boolean
  /** What a request is answered with changes with it. Default: nothing does. */
  readonly epoch?: () => number
  readonly statistics: ModelStatistics
  /** As declared; undefined where requests wait for any time and are all equal. */
  readonly queueing: Queueing | undefined
}

const defaultMaxBytes = 64 * 2 ** 20

/** @throws TypeError where they are out of range */
export const check = (
  model: string,
  options: boolean | ResponseCacheOptions = false,
): ResponseCacheOptions | undefined => {
  if (options === false) return undefined
  if (options === true) return {}
  requireInteger(model, "responseCache.maxBytes", options.maxBytes ?? defaultMaxBytes, 1)
  return options
}

/** One that waits for an answer. */
interface Waiting {
  readonly request: Request
  readonly reply: Reply
  readonly startedAt: number
  flight: Flight
}

/** One execution, and who waits for it: the first of them is the one that the scheduler counts. */
interface Flight {
  /** What is asked. */
  readonly key: string
  /** In which way it waits in the queue. */
  readonly lane: string
  readonly waiting: Set<Waiting>
  readonly counts: FlightStatistics
  cancel: Cancel
}

/** A stage in front of one model, which it answers for where it can; empty again when the scope closes. */
export const make = Effect.fnUntraced(function* (options: CacheOptions) {
  const { statistics, maxBytes = defaultMaxBytes } = options
  const clock = yield* Clock.Clock
  const nanos = () => Number(clock.monotonicTimeNanosUnsafe())
  const keyOf = keys(options)
  const store = new ResponseStore(maxBytes)
  const laneOf = lanes(options.queueing)
  const timeOf = times(options.queueing)
  /** By what is asked, and then by lane. */
  const flights = new Map<string, Map<string, Flight>>()
  let isClosed = false
  let next: Submit = () => constVoid
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isClosed = true
      store.clear()
    }),
  )
  const deadlines = new Deadlines<Waiting>(yield* AlarmClock.make, (waiting) => {
    if (!leave(waiting)) return
    const message = `${errorPrefix(waiting.request)}Deadline Exceeded`
    waiting.reply(Result.fail(new DeadlineExceeded({ message })))
  })

  const submit = (request: Request, reply: Reply): Cancel => {
    if (isClosed || isOfSequence(request) || isExpired(request)) return next(request, reply)
    const startedAt = nanos()
    const key = keyOf(request)
    const known = store.get(key)
    if (known !== undefined) {
      const answer = Result.succeed(copy(known))
      const total = nanos() - startedAt
      statistics.hit(total, total, request.rows, clock.currentTimeMillisUnsafe())
      reply(answer)
      return constVoid
    }
    const flight = flightOf(key, laneOf(request))
    const waiting: Waiting = { request, reply, startedAt, flight }
    flight.waiting.add(waiting)
    deadlines.add(waiting)
    if (flight.waiting.size === 1) begin(flight, request, nanos() - startedAt)
    return () => void leave(waiting)
  }

  const flightOf = (key: string, lane: string): Flight =>
    flights.get(key)?.get(lane) ?? {
      key,
      lane,
      waiting: new Set(),
      counts: new FlightStatistics(statistics),
      cancel: constVoid,
    }

  const put = (flight: Flight) => {
    const same = flights.get(flight.key) ?? new Map<string, Flight>()
    same.set(flight.lane, flight)
    flights.set(flight.key, same)
  }

  const remove = ({ key, lane }: Flight) => {
    const same = flights.get(key)
    same?.delete(lane)
    if (same?.size === 0) flights.delete(key)
  }

  const isExpired = ({ deadline }: Request) => deadline !== undefined && deadline <= clock.currentTimeMillisUnsafe()

  /** Deadlines are those of who waits, not of the execution. */
  const begin = (flight: Flight, request: Request, lookup: number) => {
    put(flight)
    let isOver = false
    const ended: Reply = (outcome) => {
      isOver = true
      remove(flight)
      if (Result.isFailure(outcome)) return fail(flight, request, outcome.failure)
      const insertedAt = nanos()
      const stored = copy(outcome.success)
      store.set(flight.key, stored)
      statistics.missed(lookup + nanos() - insertedAt)
      answer(flight, outcome, stored, lookup)
    }
    const cancel = next({ ...request, deadline: undefined }, ended, flight.counts)
    if (!isOver) flight.cancel = cancel
  }

  /** Who waits for the same in other lanes; their executions are taken back. */
  const takeOthers = (key: string): ReadonlyArray<Waiting> => {
    const others = [...(flights.get(key)?.values() ?? [])]
    flights.delete(key)
    return others.flatMap((flight) => {
      const taken = [...flight.waiting]
      flight.waiting.clear()
      flight.counts.end()
      flight.cancel()
      return taken
    })
  }

  const answer = (
    { key, waiting }: Flight,
    outcome: Result.Success<Response, InferenceError>,
    stored: Response,
    lookup: number,
  ) => {
    const now = nanos()
    const millis = clock.currentTimeMillisUnsafe()
    const [first, ...along] = waiting
    waiting.clear()
    const others = [...along, ...takeOthers(key)]
    // Before the replies: a caller that asks for statistics next finds its own request in them.
    for (const { startedAt, request } of others) statistics.hit(now - startedAt, lookup, request.rows, millis)
    tell([
      ...(first === undefined ? [] : [{ waiting: first, outcome }]),
      ...others.map((waiting) => ({ waiting, outcome: Result.succeed(copy(stored)) })),
    ])
  }

  const fail = ({ key, lane, waiting }: Flight, executed: Request, error: InferenceError) => {
    const now = nanos()
    // Who has come later may wait for longer: once more at the end of the queue, and so for twice its time at most.
    const isLate = ({ request, startedAt }: Waiting) => request === executed || startedAt + timeOf(request) <= now
    const late = error._tag === "QueueTimeout" ? [...waiting].filter(isLate) : [...waiting]
    const early = [...waiting].filter((one) => !late.includes(one))
    const [first, ...others] = late
    waiting.clear()
    const [next] = early
    if (next !== undefined) {
      const flight = flightOf(key, lane)
      for (const one of early) {
        one.flight = flight
        flight.waiting.add(one)
      }
      begin(flight, next.request, 0)
    }
    for (const { startedAt } of others) statistics.failed(reasonOf(error), now - startedAt)
    tell(
      [first, ...others].flatMap((waiting) =>
        waiting === undefined ? [] : [{ waiting, outcome: Result.fail(addressed(error, executed, waiting.request)) }],
      ),
    )
  }

  /** What a caller throws on its answer keeps back no other's. */
  const tell = (
    answers: ReadonlyArray<{
      readonly waiting: Waiting
      readonly outcome: Result.Result<Response, InferenceError>
    }>,
  ) => {
    const defects: Array<unknown> = []
    for (const { waiting, outcome } of answers) {
      deadlines.delete(waiting)
      try {
        waiting.reply(outcome)
      } catch (defect) {
        defects.push(defect)
      }
    }
    if (defects.length > 0) throw defects[0]
  }

  /** False where it has its answer already. The last one takes the execution with it, which counts it. */
  const leave = (waiting: Waiting): boolean => {
    const { flight } = waiting
    if (!flight.waiting.delete(waiting)) return false
    deadlines.delete(waiting)
    if (flight.waiting.size > 0) {
      statistics.failed("CANCELED", nanos() - waiting.startedAt)
      return true
    }
    remove(flight)
    flight.cancel()
    return true
  }

  const stage: Stage = (behind) => {
    next = behind
    return submit
  }
  return stage
})

/** A model with states answers the same question differently. */
const isOfSequence = ({ parameters }: Request): boolean => {
  const id = parameters["sequence_id"]
  return id !== undefined && id !== 0n && id !== ""
}

/** What the caller's own request is called in the text. */
const addressed = (error: InferenceError, executed: Request, request: Request): InferenceError => {
  const prefix = errorPrefix(executed)
  if (executed === request || !error.message.startsWith(prefix)) return error
  return withMessage(error, errorPrefix(request) + error.message.slice(prefix.length))
}

const reasonOf = ({ _tag }: InferenceError) =>
  _tag === "Unavailable" || _tag === "ModelNotReady" ? "OTHER" : "BACKEND"

/** Two requests have the same key where they ask the same: the same bytes in the same shapes, and what else is seen of them. */
const keys = ({ readsRequest, parameters: counted, epoch }: CacheOptions): ((request: Request) => string) => {
  const digest = Digest.make(Digest.randomKey())
  const bytesOf = function* ({ inputs }: Request) {
    for (const tensor of inputs) if (tensor !== undefined) yield tensor.bytes
  }
  const names = counted && counted.toSorted()
  return (request) => {
    let key = digest(bytesOf(request))
    if (epoch !== undefined) key += `${epoch()};`
    // Lengths too: those of texts do not follow from their shape.
    for (const tensor of request.inputs) key += tensor === undefined ? "-;" : `${tensor.shape},${tensor.bytes.length};`
    if (!readsRequest) return key
    const { parameters, requestedOutputs = [] } = request
    for (const name of names ?? Object.keys(parameters).toSorted()) {
      const value = parameters[name]
      if (value === undefined || (names === undefined && ofScheduling.has(name))) continue
      key += JSON.stringify([name, typeof value, String(value)])
    }
    return requestedOutputs.length === 0 ? key : key + JSON.stringify(requestedOutputs.toSorted())
  }
}

/** What its scheduler is told, until it is over: an execution that is taken back as another one was faster is none. */
class FlightStatistics implements RequestStatistics {
  readonly #statistics: RequestStatistics
  #isOver = false

  constructor(statistics: RequestStatistics) {
    this.#statistics = statistics
  }

  end(): void {
    this.#isOver = true
  }

  succeeded(...told: Parameters<RequestStatistics["succeeded"]>): void {
    if (!this.#isOver) this.#statistics.succeeded(...told)
  }

  failed(...told: Parameters<RequestStatistics["failed"]>): void {
    if (!this.#isOver) this.#statistics.failed(...told)
  }
}

/** How long a request may wait in its queue, in nanoseconds. */
const times = (queueing: Queueing | undefined): ((request: Request) => number) =>
  queueing === undefined
    ? () => Infinity
    : ({ parameters }) => timeoutOf(policyOf(queueing, levelOf(queueing, parameters)), parameters)

/** What two requests have in common that a queue treats alike. */
const lanes = (queueing: Queueing | undefined): ((request: Request) => string) => {
  if (queueing === undefined) return () => ""
  const timeOf = times(queueing)
  return (request) => `${levelOf(queueing, request.parameters)},${timeOf(request)}`
}

/** Parameters that say when a request is answered, not how. */
const ofScheduling: ReadonlySet<string> = new Set(["priority", "timeout"])
