/**
 * Slots whose requests form dynamic batches: the queue has at most one request of each sequence, and the next one
 * follows once its predecessor has ended.
 */
import type { Instance } from "../instance/Instance.ts"
import type { Decision, Queue } from "../scheduler/Queue.ts"
import type { QueuedRequest } from "../scheduler/QueuedRequest.ts"
import { Lane, type LaneMember } from "./Lane.ts"

export interface OldestLaneOptions {
  readonly slots: number
  /** Of the requests that may be executed now. */
  readonly queue: Queue
  readonly keyOf: (queued: QueuedRequest) => string
  /** The request may be executed from now on. */
  readonly onIssued: (queued: QueuedRequest) => void
}

export class OldestLane extends Lane {
  readonly #options: OldestLaneOptions

  constructor(instance: Instance | undefined, options: OldestLaneOptions) {
    super(instance, options.slots)
    this.#options = options
  }

  /** The list of an idle sequence stays empty: one that is emptied again and again costs memory each time. */
  override add(run: LaneMember, queued: QueuedRequest): void {
    if (run.issued === undefined && !run.isHeld && run.waiting.length === 0) return this.#issue(queued)
    super.add(run, queued)
  }

  advance(run: LaneMember): void {
    if (run.issued !== undefined || run.isHeld) return
    const queued = run.waiting.shift()
    if (queued !== undefined) this.#issue(queued)
  }

  #issue(queued: QueuedRequest): void {
    const { queue, keyOf, onIssued } = this.#options
    onIssued(queued)
    queue.offer(queued, keyOf(queued))
  }

  withdraw(queued: QueuedRequest): void {
    this.#options.queue.remove(queued)
  }

  isReady(now: number): boolean {
    return this.#options.queue.isReady(now, this.instance)
  }

  decide(now: number): Decision {
    return this.#options.queue.decide(now, this.instance)
  }

  ended(): void {}

  /** Sequences keep their slots until their last request has ended. */
  readonly isExecuting = false
}
