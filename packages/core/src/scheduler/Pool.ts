/**
 * The active instances of a model, and the number of batches on each. They may be replaced at any time. Dispatcher.ts
 * chooses the next batch; InstanceSet.ts builds the instances.
 */
import { Effect, Latch } from "effect"
import type { Instance } from "../instance/Instance.ts"

/** An instance, and how many batches it has. */
export interface Load {
  readonly instance: Instance
  batches: number
  /** When it got the first of these batches, in the scheduler's nanoseconds. */
  busySince: number
  /** Opened once it has none; undefined while it takes more of them. */
  idle: Latch.Latch | undefined
}

export class Pool {
  #loads: ReadonlyArray<Load>
  /** Time in which instances had batches, except for those that have any now. */
  #busyNanos = 0
  /** Called whenever an instance that could take none may take a batch. */
  #wake = () => {}

  constructor(instances: ReadonlyArray<Instance>) {
    this.#loads = instances.map(load)
  }

  watch(wake: () => void): void {
    this.#wake = wake
    for (const { instance } of this.#loads) instance.onStatusChange = wake
  }

  /** Whether any of them takes batches now. */
  get isAvailable(): boolean {
    return this.#loads.some(({ instance }) => instance.status() === "available")
  }

  /** Batches that they execute at one time now. */
  get concurrency(): number {
    let batches = 0
    for (const { instance } of this.#loads) if (instance.status() === "available") batches += instance.concurrency
    return batches
  }

  /** Whether all instances have failed. */
  get hasFailed(): boolean {
    return this.#loads.every(({ instance }) => instance.status() === "failed")
  }

  /** The one with the fewest batches of those that take another one. */
  get leastLoaded(): Load | undefined {
    let best: Load | undefined
    for (const one of this.#loads) {
      if (one.batches >= one.instance.concurrency || one.instance.status() !== "available") continue
      if (best === undefined || one.batches < best.batches) best = one
    }
    return best
  }

  get size(): number {
    return this.#loads.length
  }

  /** Time in which instances had batches until now, in nanoseconds: the sum of all instances that there were. */
  busyNanos(now: number): number {
    let nanos = this.#busyNanos
    for (const { batches, busySince } of this.#loads) if (batches > 0) nanos += now - busySince
    return nanos
  }

  begin(target: Load, now: number): void {
    if (target.batches === 0) target.busySince = now
    target.batches += 1
  }

  end(target: Load, now: number): void {
    target.batches -= 1
    if (target.batches > 0) return
    this.#busyNanos += now - target.busySince
    target.idle?.openUnsafe()
  }

  /** From now on these take batches, and no others; completes once the others have ended theirs. */
  replace(instances: ReadonlyArray<Instance>): Effect.Effect<void> {
    return Effect.suspend(() => {
      const before = this.#loads
      this.#loads = instances.map((instance) => before.find((other) => other.instance === instance) ?? load(instance))
      const leaving = before.filter((other) => !this.#loads.includes(other))
      for (const one of leaving) {
        one.instance.onStatusChange = () => {}
        one.idle = Latch.makeUnsafe(one.batches === 0)
      }
      this.watch(this.#wake)
      this.#wake()
      return Effect.forEach(leaving, ({ idle }) => idle?.await ?? Effect.void, { discard: true })
    })
  }
}

const load = (instance: Instance): Load => ({ instance, batches: 0, busySince: 0, idle: undefined })
