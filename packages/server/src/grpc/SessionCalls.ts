/**
 * The calls of an HTTP/2 connection. Counts those in flight, which node:http2 does not, and their memory. Ends the
 * connection if its client cancels too many (ResetBudget.ts), and a call if its client does not read (SendTimeout.ts).
 */
import * as GrpcTimeout from "@nereid/core/internal/grpc/GrpcTimeout"
import type { Http2Session } from "./Http2Session.ts"
import type { CallsInFlight } from "./Keepalive.ts"
import type { LimitReports } from "../limit/LimitReports.ts"
import type { HeldMemory, MemoryBudget } from "../limit/MemoryBudget.ts"
import type { Standstill } from "../limit/Standstill.ts"
import { ResetBudget } from "./ResetBudget.ts"
import type { SendTimeout } from "./SendTimeout.ts"

/** Limits that the connections of a port share. */
export interface SessionLimits {
  readonly reports: LimitReports
  readonly memory: MemoryBudget
  /** For responses that are not read. */
  readonly sendTimeout: SendTimeout
  readonly standstill: Standstill
}

/** Maximum time for the other calls of a connection that cancels too many. */
const graceMillis = 5_000

/** Bytes of an open call without its message, about. */
const callSize = 4_096

/** Open calls of a connection that do not count for its memory. */
const uncounted = 16

/** A client's own deadline counts as reached after this part of it, since its clock started before ours. */
const deadlineShare = 0.5

export class SessionCalls implements CallsInFlight {
  readonly session: Http2Session
  readonly memory: HeldMemory
  readonly sendTimeout: SendTimeout
  readonly #reports: LimitReports
  readonly #client: string
  readonly #standstill: Standstill
  /** Time of all standstills before the connection, in whole milliseconds. */
  readonly #stoodBefore: number
  /** Made for the first cancellation. Before that, completed calls add nothing to it. */
  #resets: ResetBudget | undefined
  count = 0

  /** `key` identifies the connection in the memory budget. */
  constructor(session: Http2Session, key: object, { reports, memory, sendTimeout, standstill }: SessionLimits) {
    this.session = session
    this.memory = memory.of(key)
    this.sendTimeout = sendTimeout
    this.#reports = reports
    // A connection that has failed has no socket anymore.
    this.#client = session.remoteAddress ?? "a client that has disconnected"
    this.#standstill = standstill
    this.#stoodBefore = Math.floor(standstill.total)
    standstill.watch()
    session.onClose(standstill.unwatch)
  }

  /** To be called when the stream of a call that `begin` accepted has closed. `ownDeadline` is that of the call. */
  ended(wasCancelled: boolean, ownDeadline: number | undefined): void {
    this.count -= 1
    if (this.count >= uncounted) this.memory.give(callSize)
    if (!wasCancelled) return this.#resets?.completed()
    if (this.session.isClosing) return
    // The clock of a call that has waited for the loop started before it was read.
    if (ownDeadline !== undefined && performance.now() + this.#standstill.recent >= ownDeadline) return
    this.#resets ??= new ResetBudget(() => this.#standstill.total, this.#stoodBefore)
    if (this.#resets.cancelled(this.count)) return
    this.#closing("its client cancels far more calls than it completes")
    this.session.closeWithin("too_many_resets", graceMillis)
  }

  /** Counts a call that begins. Returns false if its client holds too much memory by the calls that are open. */
  begin(): boolean {
    if (this.count >= uncounted && this.memory.take(callSize) !== undefined) return false
    this.count += 1
    return true
  }

  /** Reports a connection that node:http2 ends, because its client opens calls faster than it can close them. */
  flooded(): void {
    this.#closing("its client opens calls faster than the server can close them")
  }

  /** Reports a connection whose frames exceed a limit of `@nereid/http2`. */
  exceeded(limit: string): void {
    this.#reports.acted("frames", `Closing an HTTP/2 connection of ${this.#client}: ${limit}`)
  }

  #closing(reason: string): void {
    this.#reports.acted("stream_resets", `Closing an HTTP/2 connection of ${this.#client}: ${reason}`)
  }

  /** Bytes that the connection has sent. */
  get bytesWritten(): number {
    return this.session.bytesWritten
  }

  /** Reports a call whose client does not read its response. */
  stalled(size: number): void {
    const message = `its client has not read a response of ${size} bytes in time`
    this.#reports.acted("send_time", `Ending a call of ${this.#client}: ${message}`)
  }

  /**
   * The time at which a cancellation of the call is no longer premature, as `performance.now()`; undefined for a call
   * without a timeout, or with an invalid one.
   */
  static ownDeadline(timeout: string | ReadonlyArray<string> | undefined): number | undefined {
    if (timeout === undefined) return undefined
    const milliseconds = GrpcTimeout.parse(String(timeout))
    return milliseconds === undefined ? undefined : performance.now() + milliseconds * deadlineShare
  }
}
