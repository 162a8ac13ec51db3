/**
 * The lanes of a model: one for each instance, or one for all. A lane without an instance that takes sequences stays
 * until its last sequence is over.
 */
import type { Instance } from "../instance/Instance.ts"
import type { Lane } from "./Lane.ts"

export class Lanes {
  readonly #make: (instance: Instance | undefined) => Lane
  #all: Array<Lane> = []
  readonly #byInstance = new Map<Instance | undefined, Lane>()
  readonly #onVacated = new Map<Lane, () => void>()

  constructor(make: (instance: Instance | undefined) => Lane) {
    this.#make = make
  }

  /** The lane of an instance; that of all for undefined. */
  of(instance: Instance | undefined): Lane | undefined {
    return this.#byInstance.get(instance)
  }

  /** Sequences that have a slot. */
  get live(): number {
    let live = 0
    for (const lane of this.#all) live += lane.live
    return live
  }

  /** The lane with the lowest free slot: sequences spread over the instances. */
  get free(): Lane | undefined {
    let best: Lane | undefined
    for (const lane of this.#all) {
      const slot = lane.free
      if (slot === undefined || lane.instance?.status() === "failed") continue
      if (best?.free === undefined || slot < best.free) best = lane
    }
    return best
  }

  /** New sequences have slots of these instances only. Returns their lanes. */
  replace(instances: ReadonlyArray<Instance | undefined>): ReadonlyArray<Lane> {
    for (const lane of this.#all) {
      if (instances.includes(lane.instance)) continue
      lane.isOpen = false
      this.vacate(lane)
    }
    return instances.map((instance) => {
      const known = this.#byInstance.get(instance)
      const lane = known ?? this.#make(instance)
      lane.isOpen = true
      if (known === undefined) {
        this.#byInstance.set(instance, lane)
        this.#all.push(lane)
      }
      return lane
    })
  }

  /** Calls `done` once no sequence needs this instance any more, perhaps before this returns. */
  whenVacated(instance: Instance, done: () => void): void {
    const lane = this.#byInstance.get(instance)
    if (lane === undefined || lane.isOpen) return done()
    this.#onVacated.set(lane, done)
    this.vacate(lane)
  }

  /** Removes the lane if it takes no sequences, and has neither a sequence nor a batch. */
  vacate(lane: Lane): void {
    if (lane.isOpen || lane.live > 0 || lane.isExecuting) return
    this.#all = this.#all.filter((other) => other !== lane)
    this.#byInstance.delete(lane.instance)
    const done = this.#onVacated.get(lane)
    this.#onVacated.delete(lane)
    done?.()
  }
}
