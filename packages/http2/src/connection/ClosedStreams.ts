/**
 * The streams of a connection that have closed last. Frames of a stream that we have reset may be in flight, and are
 * ignored (RFC 9113, 5.1). All others on a closed stream are errors.
 */
const capacity = 128

/** Streams of an idle connection, mostly. V8 keeps the content of so small an array within its object. */
const initial = 16

export class ClosedStreams {
  #ids: Int32Array | undefined
  #next = 0

  add(id: number, isReset: boolean): void {
    let ids = (this.#ids ??= new Int32Array(initial))
    if (this.#next === ids.length) {
      if (ids.length === capacity) this.#next = 0
      else ids = this.#grow(ids)
    }
    ids[this.#next++] = isReset ? -id : id
  }

  /** Undefined for a stream that never was, or closed long ago. */
  get(id: number): "reset" | "ended" | undefined {
    const ids = this.#ids
    if (ids === undefined) return undefined
    if (ids.includes(-id)) return "reset"
    return ids.includes(id) ? "ended" : undefined
  }

  #grow(ids: Int32Array): Int32Array {
    const larger = new Int32Array(capacity)
    larger.set(ids)
    this.#ids = larger
    return larger
  }
}
