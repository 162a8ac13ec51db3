/**
 * The open streams of a connection by id. Not a Map: V8 keeps the discarded tables of a Map that lives long, and with
 * them all streams that were in them, until a full collection.
 */
import type { Stream } from "./Stream.ts"

const initialSlots = 8

export class StreamTable {
  size = 0
  /** Streams whose ids are equal modulo the number of slots, a power of two, are linked. */
  #slots: Array<Stream | undefined> = noSlots

  get(id: number): Stream | undefined {
    let stream = this.#slots[(id >>> 1) & (this.#slots.length - 1)]
    while (stream !== undefined && stream.id !== id) stream = stream.nextInSlot
    return stream
  }

  /** Adds a stream whose id is not in the table. */
  add(stream: Stream): void {
    if (this.size >= this.#slots.length) this.#resize(Math.max(initialSlots, this.#slots.length * 2))
    this.#link(stream)
    this.size += 1
  }

  delete(stream: Stream): void {
    const slot = this.#slotOf(stream)
    let previous: Stream | undefined
    let current = this.#slots[slot]
    while (current !== undefined && current !== stream) {
      previous = current
      current = current.nextInSlot
    }
    if (current === undefined) return
    if (previous === undefined) this.#slots[slot] = stream.nextInSlot
    else previous.nextInSlot = stream.nextInSlot
    stream.nextInSlot = undefined
    this.size -= 1
    if (this.size === 0 && this.#slots.length > 64) this.#slots = noSlots
  }

  /** All streams, in no order. Streams may be added and deleted meanwhile. */
  all(): ReadonlyArray<Stream> {
    const streams: Array<Stream> = []
    for (let stream of this.#slots) for (; stream !== undefined; stream = stream.nextInSlot) streams.push(stream)
    return streams
  }

  #resize(length: number): void {
    const streams = this.all()
    this.#slots = Array.from({ length })
    for (const stream of streams) this.#link(stream)
  }

  #link(stream: Stream): void {
    const slot = this.#slotOf(stream)
    stream.nextInSlot = this.#slots[slot]
    this.#slots[slot] = stream
  }

  #slotOf({ id }: Stream): number {
    return (id >>> 1) & (this.#slots.length - 1)
  }
}

const noSlots: Array<undefined> = []
