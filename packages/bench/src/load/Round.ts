/**
 * Records one round of any load: replies, latencies, problems, and the CPU use of the load until it stopped sending.
 */
import type { Lane, OnReply } from "./Lane.ts"
import { Latencies } from "./Latencies.ts"
import { Problems } from "./Problems.ts"
import * as Usage from "./Usage.ts"

/** Result of a round. */
export interface Measured {
  /** Number of valid replies within the round. */
  readonly requests: number
  /** Duration of the round, in seconds. */
  readonly seconds: number
  readonly perSecond: number
  readonly latencies: Latencies
  readonly problems: Problems
  /** CPU use of the load itself. */
  readonly usage: Usage.Usage
  /** Number of connections that ended and were replaced. */
  readonly reconnections: number
}

/** Extent of a round: a duration or a number of requests. */
export type Extent = { readonly seconds: number } | { readonly requests: number }

export class Round {
  readonly latencies = new Latencies()
  readonly problems = new Problems()
  /** Number of requests in flight. */
  outstanding = 0
  readonly #lanes: ReadonlyArray<Lane>
  readonly #reconnections: number
  readonly #watch = Usage.watch()
  readonly #allReplied = Promise.withResolvers<void>()
  #usage: Usage.Usage | undefined

  constructor(lanes: ReadonlyArray<Lane>, onReply: OnReply) {
    this.#lanes = lanes
    this.#reconnections = reconnections(lanes)
    for (const lane of lanes) lane.onReply = onReply
  }

  /** Stops sending. Replies to requests in flight still count. */
  stop(): void {
    this.#usage ??= this.#watch()
    if (this.outstanding === 0) this.#allReplied.resolve()
  }

  /**
   * Resolves after `stop` once no request is in flight. After `patience` milliseconds without a reply, abandons the
   * remaining requests and their connections.
   */
  async waitForReplies(patience: number): Promise<void> {
    let lastCount = -1
    const timer = setInterval(() => {
      const count = this.outstanding === 0 ? -1 : this.latencies.count + this.problems.count
      if (count >= 0 && count === lastCount) this.#allReplied.resolve()
      lastCount = count
    }, patience)
    await this.#allReplied.promise
    clearInterval(timer)
    for (const lane of this.#lanes) lane.onReply = () => {}
    if (this.outstanding === 0) return
    this.problems.add(`no response within ${patience / 1000} s`, this.outstanding)
    for (const lane of this.#lanes) lane.abandon()
  }

  measured(milliseconds: number): Measured {
    const requests = this.latencies.count
    const seconds = Math.max(milliseconds, 1e-3) / 1000
    return {
      requests,
      seconds,
      perSecond: requests / seconds,
      latencies: this.latencies,
      problems: this.problems,
      usage: this.#usage ?? this.#watch(),
      reconnections: reconnections(this.#lanes) - this.#reconnections,
    }
  }
}

const reconnections = (lanes: ReadonlyArray<Lane>): number => lanes.reduce((sum, lane) => sum + lane.reconnections, 0)
