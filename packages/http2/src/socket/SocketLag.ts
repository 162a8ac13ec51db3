/**
 * How long the bytes of a connection have waited in the sockets before they are read. Bytes have no age. But all bytes
 * before the acknowledgement of a ping were sent before the peer saw the ping, so they arrived at most one round trip
 * after it was sent. Data without a clock; times are in milliseconds.
 *
 *   ping sent ── round trip ──► ───────────────► acknowledged
 *                               ├─ read: waited ─┤
 *
 * SETTINGS count as a ping. The shortest time until an acknowledgement so far serves as the round trip. A socket that
 * was read empty has no lag. A peer that reads late delays the acknowledgement, which looks the same.
 */
export class SocketLag {
  /** Not known before the first acknowledgement. */
  #roundTrip = Infinity
  /** When the unacknowledged ping was sent. SETTINGS are the first ping. */
  #sentAt: number | undefined
  /** Time until the acknowledgement of the last one; 0 if the socket was read empty since it was sent. */
  #last = 0
  #wasEmpty = true

  /** The connection sends its settings now. */
  constructor(now: number) {
    this.#sentAt = now
  }

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

  /** The peer has acknowledged the ping or the settings. */
  acknowledged(now: number): void {
    if (this.#sentAt === undefined) return
    const took = now - this.#sentAt
    this.#sentAt = undefined
    this.#roundTrip = Math.min(this.#roundTrip, took)
    if (!this.#wasEmpty) this.#last = took
  }

  /** The time that the bytes read now have waited, at least or as the last ones did; 0 if it is not known. */
  at(now: number): number {
    if (this.#wasEmpty) return 0
    const since = this.#sentAt === undefined ? this.#last : Math.max(this.#last, now - this.#sentAt)
    return Math.max(0, since - this.#roundTrip)
  }
}
