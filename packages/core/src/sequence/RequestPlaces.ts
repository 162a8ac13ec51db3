/**
 * The pending requests of all sequences, in the order in which they were queued, and the sequence of each one. A Map
 * from requests to sequences would be slow. A Map replaces its table again and again, and each former table refers to
 * the next one. Once a full garbage collection has kept one of them, all later ones stay until the next full
 * collection, with their requests.
 */
import type { QueuedRequest } from "../scheduler/QueuedRequest.ts"
import type { SequenceRun } from "./SequenceRun.ts"

export class RequestPlaces {
  #first: RequestPlace | undefined
  #last: RequestPlace | undefined

  get(queued: QueuedRequest): SequenceRun | undefined {
    return placeOf(queued)?.run
  }

  /** Puts the request behind all others. A pending one keeps its place. */
  set(queued: QueuedRequest, run: SequenceRun): void {
    if (placeOf(queued) !== undefined) return
    const place = new RequestPlace(queued, run, this.#last)
    if (this.#last === undefined) this.#first = place
    else this.#last.next = place
    this.#last = place
    queued.place = place
  }

  /** Has no effect for a request that is not pending. */
  delete(queued: QueuedRequest): void {
    const place = placeOf(queued)
    if (place === undefined) return
    queued.place = undefined
    const { previous, next } = place
    if (previous === undefined) this.#first = next
    else previous.next = next
    if (next === undefined) this.#last = previous
    else next.previous = previous
    place.previous = place.next = undefined
  }

  *keys(): IterableIterator<QueuedRequest> {
    for (let place = this.#first; place !== undefined; place = place.next) yield place.queued
  }

  *values(): IterableIterator<SequenceRun> {
    for (let place = this.#first; place !== undefined; place = place.next) yield place.run
  }
}

/** A request in the list. */
class RequestPlace {
  readonly queued: QueuedRequest
  readonly run: SequenceRun
  previous: RequestPlace | undefined
  next: RequestPlace | undefined = undefined

  constructor(queued: QueuedRequest, run: SequenceRun, previous: RequestPlace | undefined) {
    this.queued = queued
    this.run = run
    this.previous = previous
  }
}

const placeOf = ({ place }: QueuedRequest): RequestPlace | undefined =>
  place instanceof RequestPlace ? place : undefined
