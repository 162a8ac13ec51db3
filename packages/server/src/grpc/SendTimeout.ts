/**
 * Ends calls whose client does not read the response, and frees its memory: those whose connection makes no progress
 * for the timeout, and those that take too long for their size while other calls of the connection make progress.
 */
import { TimeoutEntry, TimeoutList } from "./TimeoutList.ts"

/** Bytes between two checks below which a connection makes no progress; pings send a few. */
const minProgress = 1024

/** Minimum rate of a response after the timeout, in bytes per millisecond. */
const minRate = 32

/** A call whose response has not been sent completely. */
export abstract class SendingCall extends TimeoutEntry<SendingCall> {
  sendingSince = 0
  /** Time of the last check that found progress; undefined before the first check. */
  progressAt: number | undefined
  /** Bytes that the connection had sent at that check. */
  sentBefore = 0

  /** Bytes that the connection has sent. */
  abstract get sent(): number

  /** Bytes of the response. */
  abstract get size(): number

  /** Called once if the client does not read. The call is no longer timed then. */
  abstract stalled(): void
}

export class SendTimeout {
  readonly milliseconds: number
  readonly #list: TimeoutList<SendingCall>

  /** `milliseconds`: maximum time without progress. */
  constructor(milliseconds: number) {
    this.milliseconds = milliseconds
    this.#list = new TimeoutList(Math.max(1, milliseconds / 2), (call, now) => this.#check(call, now))
  }

  /** Starts the time of a call. Does nothing if the call is timed already. */
  add(call: SendingCall): void {
    if (call.expiresAt !== undefined) return
    const now = performance.now()
    call.sendingSince = now
    call.progressAt = undefined
    this.#list.add(call, now)
  }

  /** Ends the time of a call. Does nothing if the call is not timed. */
  remove(call: SendingCall): void {
    this.#list.remove(call)
  }

  #check(call: SendingCall, now: number): void {
    const { sent } = call
    if (call.progressAt === undefined || sent - call.sentBefore >= minProgress) {
      call.progressAt = now
      call.sentBefore = sent
    }
    const latest = call.sendingSince + this.milliseconds + call.size / minRate
    if (now - call.progressAt >= this.milliseconds || now >= latest) return call.stalled()
    this.#list.add(call, now)
  }
}
