/**
 * How long the bytes of a connection have waited in the sockets before they are read. Bytes have no age, but all that
 * comes before the acknowledgement of a ping was sent before the peer saw that ping. Data without a clock; times are in
 * milliseconds.
 *
 *   ping sent ───────────────► acknowledged
 *   ├─ read here: sent before ─┤
 *
 * A socket that was read empty has no lag. A peer that reads late delays the acknowledgement, which looks the same.
 */
export class SocketLag {
  /** When the ping was sent that is not acknowledged. */
  #sentAt: number | undefined
  /** Time until the acknowledgement of the last one; 0 if the socket was read empty since it was sent. */
  #last = 0
  #wasEmpty = true

  /** Bytes were read. `isEmpty`: no more had come. */
  hasRead(isEmpty: boolean): void {
    if (!isEmpty) return
    this.#last = 0
    this.#wasEmpty = true
  }

  /** There is more to read than its turn allows. Returns whether to send a ping. */
  isBehind(now: number): boolean {
    if (this.#sentAt !== undefined) return false
    this.#sentAt = now
    this.#wasEmpty = false
    return true
  }

  acknowledged(now: number): void {
    if (this.#sentAt !== undefined && !this.#wasEmpty) this.#last = now - this.#sentAt
    this.#sentAt = undefined
  }

  /** The time that the bytes read now have waited, at least or as the last ones did; 0 if it is not known. */
  at(now: number): number {
    if (this.#wasEmpty) return 0
    return this.#sentAt === undefined ? this.#last : Math.max(this.#last, now - this.#sentAt)
  }
}
