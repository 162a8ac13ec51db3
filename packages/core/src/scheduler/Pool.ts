/**
 * The active instances of a model, and the number of batches on each. They may be replaced at any time. Dispatcher.ts
 * chooses the next batch; InstanceSet.ts builds the instances.
 */
import { Effect, Latch } from "effect"
import type { Instance } from "../instance/Instance.ts"

/** An instance, and how many batches it has. */
export interface Load {
  readonly instance: Instance
  /** Maximum concurrent batches: an instance with a permit holds it for one. */
  readonly concurrency: number
  batches: number
  /** When it got the first of these batches, in the scheduler's nanoseconds. */
  busySince: number
  /** Opened once it has none; undefined while it takes more of them. */
  idle: Latch.Latch | undefined
  /** Whether it was replaced, and only executes requests that are pinned to it. */
  isLeaving: boolean
}

export class Pool {
  #loads: ReadonlyArray<Load>
  #isLimited: boolean
  /** Time in which instances had batches, except for those that have any now. */
  #busyNanos = 0
  /** Called whenever an instance that could take none may take a batch. */
  #wake = () => {}
  #granted = () => {}

  constructor(instances: ReadonlyArray<Instance>) {
    this.#loads = instances.map(load)
    this.#isLimited = instances.some(({ permit }) => permit !== undefined)
  }

  /** `granted` is called when the rate limiter lets an instance start a batch, for which it has waited. */
  watch(wake: () => void, granted: () => void): void {
    this.#wake = wake
    this.#granted = granted
    for (const { instance } of this.#loads) {
      instance.onStatusChange = wake
      if (instance.permit !== undefined) instance.permit.onGranted = granted
    }
  }

  /** Whether any of them takes batches now. */
  get isAvailable(): boolean {
    return this.#loads.some(({ instance, isLeaving }) => !isLeaving && instance.status() === "available")
  }

  /** Batches that they execute at one time now. */
  get concurrency(): number {
    let batches = 0
    for (const { instance, concurrency } of this.#loads) if (instance.status() === "available") batches += concurrency
    return batches
  }

  /** Further batches that they would take now. */
  get vacancies(): number {
    let batches = 0
    for (const load of this.#loads) if (isFree(load) && !load.isLeaving) batches += load.concurrency - load.batches
    return batches
  }

  /** Whether all instances have failed. */
  get hasFailed(): boolean {
    return this.#loads.every(({ instance, isLeaving }) => isLeaving || instance.status() === "failed")
  }

  /** The one with the fewest batches of those that take another one; among these, the first for the rate limiter. */
  get leastLoaded(): Load | undefined {
    let best: Load | undefined
    for (const one of this.#loads) {
      if (!isFree(one)) continue
      if (best === undefined || one.batches < best.batches || (one.batches === best.batches && goesBefore(one, best)))
        best = one
    }
    return best
  }

  /** Whether it takes another batch, and is still one of these. */
  takesMore(target: Load): boolean {
    return target.idle === undefined && isFree(target)
  }

  /** Whether any of them needs a permit of the rate limiter. */
  get isLimited(): boolean {
    return this.#isLimited
  }

  /** The instances that wait for the rate limiter. */
  get staged(): ReadonlyArray<Load> {
    return this.#isLimited ? this.#loads.filter(({ instance }) => instance.permit?.isStaged === true) : noLoads
  }

  /** Those that take another batch, the least loaded first. */
  get free(): ReadonlyArray<Load> {
    return this.#loads.filter(isFree).toSorted((one, other) => one.batches - other.batches)
  }

  /** Those that execute nothing any more. */
  get failed(): ReadonlyArray<Instance> {
    return this.#loads.flatMap(({ instance }) => (instance.status() === "failed" ? [instance] : []))
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

  /**
   * From now on these take batches, and others only while requests are pinned to them: `vacated` calls its argument at
   * the end of that. Completes once the others have ended their batches.
   */
  replace(
    instances: ReadonlyArray<Instance>,
    vacated: (instance: Instance, done: () => void) => void = (_, done) => done(),
  ): Effect.Effect<void> {
    return Effect.suspend(() => {
      const before = this.#loads
      const staying = instances.map((instance) => before.find((other) => other.instance === instance) ?? load(instance))
      const leaving = before.filter((other) => !staying.includes(other))
      for (const one of staying) one.isLeaving = false
      for (const one of leaving) one.isLeaving = true
      this.#setLoads([...staying, ...leaving])
      const ends = leaving.map((one) => {
        const hasLeft = Latch.makeUnsafe(false)
        vacated(one.instance, () => this.#remove(one, hasLeft))
        return Effect.andThen(
          hasLeft.await,
          Effect.suspend(() => one.idle?.await ?? Effect.void),
        )
      })
      this.watch(this.#wake, this.#granted)
      this.#wake()
      return Effect.forEach(ends, (end) => end, { discard: true })
    })
  }

  #remove(one: Load, hasLeft: Latch.Latch): void {
    const { instance } = one
    instance.onStatusChange = () => {}
    instance.permit?.withdraw()
    if (instance.permit !== undefined) instance.permit.onGranted = () => {}
    one.idle = Latch.makeUnsafe(one.batches === 0)
    this.#setLoads(this.#loads.filter((other) => other !== one))
    hasLeft.openUnsafe()
  }

  #setLoads(loads: ReadonlyArray<Load>): void {
    this.#loads = loads
    this.#isLimited = loads.some(({ instance }) => instance.permit !== undefined)
  }
}

const noLoads: ReadonlyArray<Load> = []

const load = (instance: Instance): Load => ({
  instance,
  concurrency: instance.permit === undefined ? instance.concurrency : 1,
  batches: 0,
  busySince: 0,
  idle: undefined,
  isLeaving: false,
})

const isFree = ({ batches, concurrency, instance }: Load): boolean =>
  batches < concurrency && instance.status() === "available"

/** An instance that needs no permit goes before those that do. */
const goesBefore = ({ instance: one }: Load, { instance: other }: Load): boolean =>
  other.permit !== undefined && (one.permit === undefined || one.permit.rank < other.permit.rank)
