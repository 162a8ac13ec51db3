/**
 * Slots whose requests keep their row: the batch spans the slots up to the highest one with a request. A slot without a
 * request that fits is an empty row, so that a model may keep state by row.
 *
 *   slot   0        1        2        3
 *          a b      -        c        d e        ─► batch [a, empty, c, d]
 */
import type { Instance } from "../instance/Instance.ts"
import type { Request } from "../request/Request.ts"
import { type Decision, empty } from "../scheduler/Queue.ts"
import { QueuedRequest } from "../scheduler/QueuedRequest.ts"
import { Lane, type LaneMember } from "./Lane.ts"

export interface DirectLaneOptions {
  readonly slots: number
  readonly maxQueueDelay: number
  readonly minSlotUtilization: number
  /** Requests share a batch only where this agrees. */
  readonly keyOf: (queued: QueuedRequest) => string
  /** A row without a request, alike in shapes to this request. */
  readonly emptyRow: (like: Request) => Request
  /** The request is part of a batch from now on. */
  readonly onIssued: (queued: QueuedRequest) => void
}

export class DirectLane extends Lane {
  readonly #options: DirectLaneOptions
  #isExecuting = false

  constructor(instance: Instance, options: DirectLaneOptions) {
    super(instance, options.slots)
    this.#options = options
  }

  /** A slot is looked at when its batch is made. */
  advance(): void {}

  /** Issued requests are executing. */
  withdraw(): void {}

  ended(): void {
    this.#isExecuting = false
  }

  get isExecuting(): boolean {
    return this.#isExecuting
  }

  isReady(now: number): boolean {
    const heads = this.#heads()
    return heads !== undefined && heads.until <= now
  }

  decide(now: number): Decision {
    const { keyOf, emptyRow, onIssued } = this.#options
    const heads = this.#heads()
    if (heads === undefined) return empty
    const { first, highest, until } = heads
    if (until > now) return { _tag: "Wait", until }
    const key = keyOf(first)
    const like = first.request
    this.#isExecuting = true
    const requests = this.runs.slice(0, highest + 1).map((run) => {
      const head = nextOf(run)
      if (run === undefined || head === undefined || keyOf(head) !== key) return QueuedRequest.empty(emptyRow(like))
      run.waiting.shift()
      onIssued(head)
      return head
    })
    return { _tag: "Take", requests }
  }

  /** The first requests of the slots; undefined if there is none, or while a batch executes. */
  #heads(): Heads | undefined {
    if (this.#isExecuting) return undefined
    let highest = -1
    let ready = 0
    let oldest = Infinity
    let first: QueuedRequest | undefined
    for (const [slot, run] of this.runs.entries()) {
      const head = nextOf(run)
      if (head === undefined) continue
      first ??= head
      highest = slot
      ready += 1
      if (head.queuedAt < oldest) oldest = head.queuedAt
    }
    return first && { first, highest, until: this.#until(ready, oldest) }
  }

  /** The time until which the ready slots wait for others. */
  #until(ready: number, oldest: number): number {
    const { maxQueueDelay, minSlotUtilization, slots } = this.#options
    if (maxQueueDelay === 0 || minSlotUtilization === 0 || ready / slots >= minSlotUtilization) return -Infinity
    return oldest + maxQueueDelay
  }
}

const nextOf = (run: LaneMember | undefined): QueuedRequest | undefined =>
  run?.isHeld === true ? undefined : run?.waiting[0]

interface Heads {
  /** That of the lowest slot. */
  readonly first: QueuedRequest
  /** The highest slot with a request. */
  readonly highest: number
  /** The time until which they wait for others. */
  readonly until: number
}
