/**
 * Timeout for receiving complete messages, with one timer for all calls. All calls have the same timeout, so they
 * expire in the order of their start. A call within its time costs two operations on a linked list.
 */
import * as Timer from "../port/Timer.ts"

/** A call whose message is arriving. A call is in one list at a time. */
export abstract class ReceivingCall {
  /** Set while the call is in the list. */
  expiresAt: number | undefined
  previous: ReceivingCall | undefined
  next: ReceivingCall | undefined

  /** Called once if the message is late. The call is no longer in the list then. */
  abstract expire(): void
}

export class ReceiveTimeout {
  readonly milliseconds: number
  #first: ReceivingCall | undefined
  #last: ReceivingCall | undefined
  #isTimerSet = false

  constructor(milliseconds: number) {
    this.milliseconds = milliseconds
  }

  /** Starts the time of a call that is not in the list. */
  add(call: ReceivingCall): void {
    call.expiresAt = performance.now() + this.milliseconds
    call.previous = this.#last
    if (this.#last === undefined) this.#first = call
    else this.#last.next = call
    this.#last = call
    if (!this.#isTimerSet) this.#setTimer(this.milliseconds)
  }

  /** Ends the time of a call. Does nothing if the call is not in the list. */
  remove(call: ReceivingCall): void {
    if (call.expiresAt === undefined) return
    const { previous, next } = call
    if (previous === undefined) this.#first = next
    else previous.next = next
    if (next === undefined) this.#last = previous
    else next.previous = previous
    call.expiresAt = call.previous = call.next = undefined
  }

  /** The timer stays set while the list is empty, so that the next call need not set it. */
  #setTimer(milliseconds: number): void {
    this.#isTimerSet = true
    Timer.start(() => this.#expire(), Math.max(1, Math.ceil(milliseconds)))?.unref()
  }

  #expire(): void {
    this.#isTimerSet = false
    const now = performance.now()
    for (let call = this.#first; call?.expiresAt !== undefined; call = this.#first) {
      if (call.expiresAt > now) return this.#setTimer(call.expiresAt - now)
      this.remove(call)
      call.expire()
    }
  }
}
