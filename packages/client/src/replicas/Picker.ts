/**
 * Picks the replica of an attempt: of two random ones, the one with fewer attempts under way. A slow replica counts its
 * attempts several times, a replica that returns after an ejection receives a growing share, and an ejected one
 * nothing. If too few are left, all receive calls: the ejections may be wrong, and no call has anything to lose.
 */
import type { Replica } from "./Replica.ts"

/** Time between two computations of the usual response time, in milliseconds. */
const refreshInterval = 100

export class Picker {
  /** Share of replicas below which ejections are ignored. */
  readonly #panicThreshold: number
  readonly #random: () => number
  readonly #candidates: Array<Replica> = []
  #usual = 0
  #refreshedAt = -Infinity

  constructor(panicThreshold: number, random: () => number) {
    this.#panicThreshold = panicThreshold
    this.#random = random
  }

  /** Returns none of those tried, unless all are. Undefined only if there are none. */
  pick(replicas: ReadonlyArray<Replica>, tried: ReadonlyArray<Replica>, now: number): Replica | undefined {
    const [only] = replicas
    if (replicas.length <= 1) return only
    this.#refresh(replicas, now)
    return this.#eligible(replicas, tried, now) ?? this.#any(replicas, tried, now)
  }

  /** Returns one that has not been tried and is not ejected. */
  untried(replicas: ReadonlyArray<Replica>, tried: ReadonlyArray<Replica>, now: number): Replica | undefined {
    this.#refresh(replicas, now)
    return this.#eligible(replicas, tried, now)
  }

  #eligible(replicas: ReadonlyArray<Replica>, tried: ReadonlyArray<Replica>, now: number): Replica | undefined {
    const admitted = this.#candidates
    admitted.length = 0
    let eligible = 0
    let last: Replica | undefined
    for (const replica of replicas) {
      const share = replica.share(now)
      if (share === 0) continue
      eligible += 1
      if (tried.includes(replica)) continue
      last = replica
      if (share === 1 || this.#random() < share) admitted.push(replica)
    }
    if (eligible < this.#panicThreshold * replicas.length) return undefined
    return admitted.length === 0 ? last : this.#better(admitted, now)
  }

  /** Ignores ejections. */
  #any(replicas: ReadonlyArray<Replica>, tried: ReadonlyArray<Replica>, now: number): Replica | undefined {
    const untried = replicas.filter((replica) => !tried.includes(replica))
    return this.#better(untried.length === 0 ? replicas : untried, now)
  }

  #better(replicas: ReadonlyArray<Replica>, now: number): Replica | undefined {
    const count = replicas.length
    const first = Math.floor(this.#random() * count)
    const one = replicas[first]
    if (one === undefined || count === 1) return one
    const other = replicas[(first + 1 + Math.floor(this.#random() * (count - 1))) % count] ?? one
    return this.#cost(other, now) < this.#cost(one, now) ? other : one
  }

  #cost({ outstanding, latency }: Replica, now: number): number {
    // Squared: a burst of calls at the others must not send its calls to a slow replica.
    return (outstanding + 1) * latency.slowness(this.#usual, now) ** 2
  }

  /** The usual response time is the median of the replicas', and of an even number the smaller one of the middle. */
  #refresh(replicas: ReadonlyArray<Replica>, now: number): void {
    if (now - this.#refreshedAt < refreshInterval) return
    this.#refreshedAt = now
    const averages = replicas.flatMap(({ latency: { average } }) => (average === undefined ? [] : [average]))
    averages.sort((one, other) => one - other)
    this.#usual = averages[Math.floor((averages.length - 1) / 2)] ?? 0
  }
}
