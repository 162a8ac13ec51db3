/**
 * The streams of a connection that have closed last. Frames of a stream that we have reset may be in flight, and are
 * ignored (RFC 9113, 5.1). All others on a closed stream are errors.
 */
const capacity = 128

export class ClosedStreams {
  /** Those that we have reset are negative. An idle connection has few, so it is no typed array. */
  #ids: Array<number> = none
  #next = 0

  add(id: number, isReset: boolean): void {
    const closed = isReset ? -id : id
    if (this.#ids === none) this.#ids = [closed]
    else if (this.#ids.length < capacity) this.#ids.push(closed)
    else {
      this.#ids[this.#next] = closed
      this.#next = (this.#next + 1) % capacity
    }
  }

  /** Undefined for a stream that never was, or closed long ago. */
  get(id: number): "reset" | "ended" | undefined {
    const ids = this.#ids
    if (ids.includes(-id)) return "reset"
    return ids.includes(id) ? "ended" : undefined
  }
}

/** Shared, and never filled. */
const none: Array<number> = []
