/**
 * Writes server-sent events of one response, those of a turn of the event loop together: a write costs more than an
 * event. HttpGenerate.ts decides what the events say.
 */
import { isClosed, type OutgoingResponse } from "../port/HttpExchange.ts"

/** Bytes of events that wait for the end of the turn; more are written at once. */
const maxWaiting = 16 * 1024

/** Bytes of the first buffer of a turn; each further one has twice as many, or what its event needs. */
const firstBuffer = 1024

const start = Buffer.from("data: ")
const end = Buffer.from("\n\n")

export class EventStream {
  readonly #response: OutgoingResponse
  /** Events that wait; undefined if there are none. */
  #events: Buffer | undefined
  #size = 0
  #hasRoom = true

  constructor(response: OutgoingResponse) {
    this.#response = response
    response.on("drain", () => (this.#hasRoom = true))
  }

  /** Adds an event. Returns whether the client can take another one now; otherwise the response emits `drain`. */
  write(document: Uint8Array): boolean {
    const length = start.length + document.length + end.length
    const events = this.#withRoom(length)
    // A copy: kept documents of many events would outlive collections of the young generation.
    events.set(start, this.#size)
    events.set(document, this.#size + start.length)
    this.#size += length
    events.set(end, this.#size - end.length)
    if (this.#size >= maxWaiting) this.#flush()
    return this.#hasRoom
  }

  /** Ends the response, after the events so far. */
  end(): void {
    this.#flush()
    this.#response.end()
  }

  #withRoom(length: number): Buffer {
    const needed = this.#size + length
    const former = this.#events
    if (former !== undefined && former.length >= needed) return former
    if (former === undefined) process.nextTick(() => this.#flush())
    const events = Buffer.allocUnsafe(Math.max(needed, former === undefined ? firstBuffer : 2 * former.length))
    if (former !== undefined) events.set(former.subarray(0, this.#size))
    this.#events = events
    return events
  }

  #flush(): void {
    if (this.#events === undefined) return
    const events = this.#events.subarray(0, this.#size)
    this.#events = undefined
    this.#size = 0
    if (!isClosed(this.#response)) this.#hasRoom = this.#response.write(events)
  }
}
