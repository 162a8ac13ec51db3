/**
 * One execution and the requests that wait for its response, as in Go's singleflight. Requests share a flight if they
 * have the same key, priority and queue timeout. Data only; ResponseCache.ts starts and ends flights.
 */
import { constVoid } from "effect/Function"
import type { RequestStatistics } from "../metrics/ModelStatistics.ts"
import type { Cancel, Reply } from "../request/Request.ts"
import type { PendingRequest } from "../scheduler/Deadlines.ts"

export interface WaitingRequest extends PendingRequest<WaitingRequest> {
  readonly reply: Reply
  /** When it was submitted, in nanoseconds of the monotonic clock. */
  readonly startedAt: number
  flight: Flight
}

export class Flight {
  readonly key: string
  /** How the request waits in the queue: its priority level and its timeout. */
  readonly lane: string
  /** In the order of arrival. The scheduler counts the first one. */
  readonly waiting = new Set<WaitingRequest>()
  readonly statistics: FlightStatistics
  cancel: Cancel = constVoid
  /** Whether the response is looked for in a shared cache, so that nothing executes it yet. */
  isLookup = false
  /** Key of the response in the shared cache; undefined without one. */
  sharedKey: string | undefined

  constructor(key: string, lane: string, statistics: RequestStatistics) {
    this.key = key
    this.lane = lane
    this.statistics = new FlightStatistics(statistics)
  }
}

/**
 * Counts the request of a flight until `end`. An execution that is cancelled because another one was faster counts
 * nothing.
 */
class FlightStatistics implements RequestStatistics {
  readonly #statistics: RequestStatistics
  #isOver = false

  constructor(statistics: RequestStatistics) {
    this.#statistics = statistics
  }

  end(): void {
    this.#isOver = true
  }

  succeeded(...counted: Parameters<RequestStatistics["succeeded"]>): void {
    if (!this.#isOver) this.#statistics.succeeded(...counted)
  }

  failed(...counted: Parameters<RequestStatistics["failed"]>): void {
    if (!this.#isOver) this.#statistics.failed(...counted)
  }
}

/** The flights of a model, by key and then by lane. */
export class Flights {
  readonly #byKey = new Map<string, Map<string, Flight>>()

  get(key: string, lane: string): Flight | undefined {
    return this.#byKey.get(key)?.get(lane)
  }

  add(flight: Flight): void {
    const lanes = this.#byKey.get(flight.key) ?? new Map<string, Flight>()
    lanes.set(flight.lane, flight)
    this.#byKey.set(flight.key, lanes)
  }

  remove({ key, lane }: Flight): void {
    const lanes = this.#byKey.get(key)
    lanes?.delete(lane)
    if (lanes?.size === 0) this.#byKey.delete(key)
  }

  /** Removes and returns the flights of all lanes. */
  take(key: string): ReadonlyArray<Flight> {
    const lanes = this.#byKey.get(key)
    if (lanes === undefined) return noFlights
    this.#byKey.delete(key)
    return [...lanes.values()]
  }
}

const noFlights: ReadonlyArray<Flight> = []
