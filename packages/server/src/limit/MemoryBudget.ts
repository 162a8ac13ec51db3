/**
 * Memory that callers make the server hold, in bytes, as one budget over all ports: incomplete and complete requests,
 * their tensors, and responses that have not been sent. Without it, many callers, each within its own limits, would
 * fill the memory.
 *
 *   used ≤ limit / 2    any connection takes what it needs
 *   used ≤ limit        a connection takes up to its fair share, limit / connections that hold anything
 *   used > limit        small responses only, since refusing them would free nothing
 */
import { QueueFull } from "@nereid/core/Errors"
import { type LimitReports, none } from "./LimitReports.ts"

/** Size of a response, in bytes, up to which it is never refused: about that of the refusal itself. */
const smallResponse = 4 * 1024

/** Time after which a refused caller may try again, in milliseconds. */
const retryAfter = 1_000

export class MemoryBudget {
  readonly limit: number
  readonly #limits: LimitReports
  readonly #connections = new WeakMap<object, HeldMemory>()
  /** Bytes that all connections hold. */
  used = 0
  /** Connections that hold anything. */
  holders = 0
  /** For requests whose connection is unknown. */
  readonly unattributed: HeldMemory

  constructor(limit: number, limits: LimitReports = none) {
    this.limit = limit
    this.#limits = limits
    this.unattributed = new HeldMemory(this)
  }

  /** Returns the memory of a connection. `connection` is a socket or an HTTP/2 session; undefined if it has closed. */
  of(connection: object | undefined): HeldMemory {
    if (connection === undefined) return this.unattributed
    const known = this.#connections.get(connection)
    if (known !== undefined) return known
    const memory = new HeldMemory(this)
    this.#connections.set(connection, memory)
    return memory
  }

  refused(message: string): QueueFull {
    this.#limits.acted("held_memory", `Refused a request or a response: ${message}`)
    return new QueueFull({ message, retryAfter })
  }
}

/** Memory that one connection makes the server hold. Holders give back all that they have taken. */
export class HeldMemory {
  readonly #budget: MemoryBudget
  #held = 0

  constructor(budget: MemoryBudget) {
    this.#budget = budget
  }

  /** Takes bytes. Returns an error, and takes nothing, if the budget does not allow it. */
  take(bytes: number): QueueFull | undefined {
    const budget = this.#budget
    const { limit, used } = budget
    const total = used + bytes
    if (total > limit) {
      return budget.refused(`callers hold ${used} bytes of this server's memory, at most ${limit}`)
    }
    if (total > limit / 2) {
      const share = Math.floor(limit / (this.#held > 0 ? budget.holders : budget.holders + 1))
      if (this.#held + bytes > share) {
        const held = `this connection holds ${this.#held} bytes of this server's memory`
        return budget.refused(`${held}, at most ${share} while callers hold ${used} of ${limit} bytes`)
      }
    }
    this.add(bytes)
    return undefined
  }

  /** Takes bytes of a response. A small response is never refused. */
  takeResponse(bytes: number): QueueFull | undefined {
    if (bytes > smallResponse) return this.take(bytes)
    this.add(bytes)
    return undefined
  }

  /**
   * Takes bytes ahead of their arrival, from the first half of the budget only. Clients that announce much and send
   * little thus do not block others. Returns false, and takes nothing, if the limit would be exceeded.
   */
  reserve(bytes: number): boolean {
    if (this.#budget.used + bytes > this.#budget.limit / 2) return false
    this.add(bytes)
    return true
  }

  /** Takes bytes that are held already, even beyond the limit. */
  add(bytes: number): void {
    if (this.#held === 0 && bytes > 0) this.#budget.holders += 1
    this.#held += bytes
    this.#budget.used += bytes
  }

  give(bytes: number): void {
    if (bytes === 0) return
    this.#held -= bytes
    this.#budget.used -= bytes
    if (this.#held === 0) this.#budget.holders -= 1
  }
}
