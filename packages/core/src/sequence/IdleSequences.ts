/**
 * Sequences without requests, by the time at which they expire. All have the same limit, so the first one expires
 * first.
 */
import { RunList } from "./RunList.ts"
import type { SequenceRun } from "./SequenceRun.ts"

export class IdleSequences {
  readonly #maxIdle: number
  readonly #list = new RunList<SequenceRun>()

  /** `maxIdle` in nanoseconds. */
  constructor(maxIdle: number) {
    this.#maxIdle = maxIdle
  }

  /** When the first one expires; infinite if none does. */
  get earliest(): number {
    const { first } = this.#list
    return first === undefined ? Infinity : first.idleSince + this.#maxIdle
  }

  add(run: SequenceRun, now: number): void {
    run.idleSince = now
    this.#list.add(run)
  }

  /** Has no effect for a sequence with requests. */
  delete(run: SequenceRun): void {
    this.#list.delete(run)
  }

  /** Takes out the first one if it has expired. */
  take(now: number): SequenceRun | undefined {
    const { first } = this.#list
    if (first === undefined || first.idleSince + this.#maxIdle > now) return undefined
    this.#list.delete(first)
    return first
  }
}
