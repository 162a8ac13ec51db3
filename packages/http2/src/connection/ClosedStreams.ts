/**
 * The streams of a connection that have closed last. Frames of a stream that we have reset may be in flight, and are
 * ignored (RFC 9113, 5.1). All others on a closed stream are errors.
 */
const capacity = 128

export class ClosedStreams {
  #ids: Int32Array | undefined
  #next = 0

  add(id: number, isReset: boolean): void {
    const ids = (this.#ids ??= new Int32Array(capacity))
    ids[this.#next] = isReset ? -id : id
    this.#next = (this.#next + 1) % capacity
  }

  /** Undefined for a stream that never was, or closed long ago. */
  get(id: number): "reset" | "ended" | undefined {
    const ids = this.#ids
    if (ids === undefined) return undefined
    if (ids.includes(-id)) return "reset"
    return ids.includes(id) ? "ended" : undefined
  }
}
