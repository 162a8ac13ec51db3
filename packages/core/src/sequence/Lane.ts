/**
 * The slots of one instance, each of which belongs to one sequence at a time. DirectLane.ts and OldestLane.ts make
 * batches of their requests.
 */
import type { Instance } from "../instance/Instance.ts"
import type { Decision } from "../scheduler/Queue.ts"
import type { QueuedRequest } from "../scheduler/QueuedRequest.ts"

/** A sequence, as its slot sees it. */
export interface LaneMember {
  /** Its requests that wait behind `issued`, in their order. */
  readonly waiting: Array<QueuedRequest>
  /** Its request that may be part of the next batch, or that an instance executes. */
  readonly issued: QueuedRequest | undefined
  /** Whether its waiting requests stay where they are, because it is being exported. */
  readonly isHeld: boolean
  /** Undefined while it waits for a slot, and once it has none. */
  lane: Lane | undefined
  slot: number
}

export abstract class Lane {
  /** The only instance that executes its requests; undefined if any may. */
  readonly instance: Instance | undefined
  /** Whether new sequences may have its slots. */
  isOpen = true
  readonly #capacity: number
  protected readonly runs: Array<LaneMember | undefined> = []
  #live = 0
  /** No slot below this one is free. */
  #lowestFree = 0

  constructor(instance: Instance | undefined, capacity: number) {
    this.instance = instance
    this.#capacity = capacity
  }

  /** Sequences that have a slot. */
  get live(): number {
    return this.#live
  }

  /** The lowest free slot; undefined if there is none. */
  get free(): number | undefined {
    if (!this.isOpen || this.#live >= this.#capacity) return undefined
    while (this.runs[this.#lowestFree] !== undefined) this.#lowestFree += 1
    return this.#lowestFree
  }

  /** Gives the sequence a free slot. */
  enter(run: LaneMember, slot: number): void {
    this.runs[slot] = run
    this.#live += 1
    run.lane = this
    run.slot = slot
  }

  /** Takes its slot from the sequence. */
  leave(run: LaneMember): void {
    this.runs[run.slot] = undefined
    this.#live -= 1
    if (run.slot < this.#lowestFree) this.#lowestFree = run.slot
    run.lane = undefined
    run.slot = -1
  }

  /** A request of the sequence, behind those that wait. */
  add(run: LaneMember, queued: QueuedRequest): void {
    run.waiting.push(queued)
    this.advance(run)
  }

  /** The first waiting request of the sequence may be executed now. */
  abstract advance(run: LaneMember): void
  /** An issued request leaves without an execution. */
  abstract withdraw(queued: QueuedRequest): void
  /** Whether `decide` would take a batch. */
  abstract isReady(now: number): boolean
  /** The next batch, whose requests are issued from now on. */
  abstract decide(now: number): Decision
  /** A batch of this lane has ended. */
  abstract ended(): void
  /** Whether it has a batch whose sequences may have left their slots already. */
  abstract readonly isExecuting: boolean
}
