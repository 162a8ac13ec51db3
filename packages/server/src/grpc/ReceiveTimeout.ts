/**
 * Limits the time in which the message of a call must arrive: a total time, and a minimum rate once a part of it has
 * arrived. Clients that send a little now and then cannot hold memory for the total time.
 */
import { minBytes, periodMillis } from "../limit/ReceiveRate.ts"
import { TimeoutEntry, TimeoutList } from "./TimeoutList.ts"

/** A call whose message is arriving. */
export abstract class ReceivingCall extends TimeoutEntry<ReceivingCall> {
  lateAt = 0
  /** `received` at the last check. */
  receivedBefore = 0

  /** Bytes of the message that have arrived. */
  abstract get received(): number

  /** Called once if the message is late, or arrives too slowly. The call is no longer timed then. */
  abstract expire(reason: "late" | "slow"): void
}

export class ReceiveTimeout {
  readonly milliseconds: number
  readonly #list: TimeoutList<ReceivingCall>

  /** `milliseconds`: maximum time of a message. */
  constructor(milliseconds: number) {
    this.milliseconds = milliseconds
    this.#list = new TimeoutList(Math.min(milliseconds, periodMillis), (call, now) => this.#check(call, now))
  }

  /** Starts the time of a call that is not timed. */
  add(call: ReceivingCall): void {
    const now = performance.now()
    call.lateAt = now + this.milliseconds
    call.receivedBefore = 0
    this.#list.add(call, now)
  }

  /** Ends the time of a call. Does nothing if the call is not timed. */
  remove(call: ReceivingCall): void {
    this.#list.remove(call)
  }

  #check(call: ReceivingCall, now: number): void {
    if (now >= call.lateAt) return call.expire("late")
    const { received } = call
    if (received > 0 && received - call.receivedBefore < minBytes) return call.expire("slow")
    call.receivedBefore = received
    this.#list.add(call, now)
  }
}
