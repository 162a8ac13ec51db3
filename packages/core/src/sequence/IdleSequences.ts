/**
 * Sequences without requests, by the time at which they expire. Most have the limit of the model, so the first of them
 * to become idle expires first. Those with limits of their own are in a heap.
 */
import { IdleHeap } from "./IdleHeap.ts"
import { RunList } from "./RunList.ts"
import type { SequenceRun } from "./SequenceRun.ts"

export class IdleSequences {
  readonly #maxIdle: number
  readonly #list = new RunList<SequenceRun>()
  readonly #heap = new IdleHeap<SequenceRun>()

  /** `maxIdle` of the model, in nanoseconds. */
  constructor(maxIdle: number) {
    this.#maxIdle = maxIdle
  }

  /** When the first one expires; infinite if none does. */
  get earliest(): number {
    return Math.min(this.#list.first?.expiresAt ?? Infinity, this.#heap.first?.expiresAt ?? Infinity)
  }

  add(run: SequenceRun, now: number): void {
    run.expiresAt = now + (run.maxIdle ?? this.#maxIdle)
    if (run.maxIdle === undefined) this.#list.add(run)
    else this.#heap.add(run)
  }

  /** Has no effect for a sequence with requests. */
  delete(run: SequenceRun): void {
    this.#list.delete(run)
    this.#heap.delete(run)
  }

  /** Takes out one that has expired. */
  take(now: number): SequenceRun | undefined {
    const run = [this.#list.first, this.#heap.first].find((first) => first !== undefined && first.expiresAt <= now)
    if (run !== undefined) this.delete(run)
    return run
  }
}
