/**
 * The order of requests from several connections in one queue, so that a connection with many requests does not delay
 * the others: start-time fair queueing. Each request has a turn, and the lowest one goes first. The turns of one
 * connection follow each other, at the distance of their rows; those of a connection that has waited for nothing begin
 * at the turn that is executed now. Requests of one connection keep their order. Data only.
 *
 *   connection a   1  2  3  4  5        goes as  a1 b1 a2 b2 a3 a4 a5
 *   connection b   1  2
 */
import type { ConnectionShare as Share, QueuedRequest } from "./QueuedRequest.ts"
import type { Request } from "../request/Request.ts"

/** Whether a request has an earlier turn, or came earlier with the same one. */
export const isAhead = (one: QueuedRequest, other: QueuedRequest): boolean =>
  one.turn < other.turn || (one.turn === other.turn && one.queuedAt < other.queuedAt)

/**
 * A request displaces another one from a full queue only if its wait is less than this share of the other's. A
 * displaced request was decoded and queued for nothing, so connections with similar numbers of requests do not displace
 * each other's.
 */
const displacingShare = 1 / 4

export class FairTurns {
  /** The turn that was taken last. */
  #now = 0
  /** Connections with requests in the queue. */
  #queued = 0
  readonly #shares = new WeakMap<object, Share>()
  /** Requests without a connection have one share. */
  readonly #unattributed: Share = { last: 0, rows: 0 }

  /** Gives a request that is queued its turn. */
  enter(queued: QueuedRequest): void {
    const { rows } = queued.request
    const share = this.#shareOf(queued.request)
    if (share.rows === 0) this.#queued += 1
    share.rows += rows
    queued.share = share
    queued.turn = Math.max(this.#now, share.last)
    share.last = queued.turn + rows
  }

  leave({ request, share }: QueuedRequest): void {
    if (share === undefined) return
    share.rows -= request.rows
    if (share.rows === 0) this.#queued -= 1
  }

  /** These are executed: what comes now does not go ahead of them. */
  taken(requests: ReadonlyArray<QueuedRequest>): void {
    for (const { turn } of requests) this.#now = Math.max(this.#now, turn)
  }

  /** Whether a request may take the place of a queued one in a full queue. */
  displaces(request: Request, { turn }: QueuedRequest): boolean {
    const share = this.#shareOf(request)
    const own = Math.max(this.#now, share.last)
    // A connection with nothing in the queue is not one of many that displace each other.
    if (share.rows === 0) return own < turn
    return own - this.#now < displacingShare * (turn - this.#now)
  }

  /** At most so many rows go before those of a request, if others have as many queued as its own connection. */
  rowsAhead(request: Request): number {
    const { rows } = this.#shareOf(request)
    const others = rows === 0 ? this.#queued : this.#queued - 1
    return rows + (rows + request.rows) * others
  }

  #shareOf({ connection }: Request): Share {
    if (connection === undefined) return this.#unattributed
    let share = this.#shares.get(connection)
    if (share === undefined) this.#shares.set(connection, (share = { last: 0, rows: 0 }))
    return share
  }
}
