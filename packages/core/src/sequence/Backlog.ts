/** The sequences that wait for a slot, in their order, and the times at which they give up. */
import { Expiries } from "../scheduler/Expiries.ts"
import type { QueuedRequest } from "../scheduler/QueuedRequest.ts"
import { RunList } from "./RunList.ts"
import type { SequenceRun } from "./SequenceRun.ts"

export class Backlog {
  readonly #list = new RunList<SequenceRun>()
  readonly #deadlines = new Expiries<SequenceRun>()

  get size(): number {
    return this.#list.size
  }

  /** Requests of the sequences. */
  get requests(): number {
    let requests = 0
    for (const { waiting } of this.#list) requests += waiting.length
    return requests
  }

  get first(): SequenceRun | undefined {
    return this.#list.first
  }

  /** The earliest time at which a sequence gives up; infinite for none. */
  get expiresAt(): number {
    return this.#deadlines.earliest
  }

  add(run: SequenceRun): void {
    this.#list.add(run)
  }

  /** Has no effect for a sequence that does not wait. */
  delete(run: SequenceRun): void {
    this.#list.delete(run)
    this.#deadlines.delete(run.deadline)
    run.deadline = undefined
  }

  /** A sequence gives up when the first of its requests does, by its parameter `timeout` in microseconds. */
  limit(run: SequenceRun, { request, queuedAt }: QueuedRequest): void {
    const { timeout } = request.parameters
    if (typeof timeout !== "bigint" || timeout <= 0n) return
    const time = queuedAt + Number(timeout) * 1e3
    if (run.deadline?.isListed !== true) run.deadline = this.#deadlines.add(run, time)
    else if (time < run.deadline.time) this.#deadlines.change(run.deadline, time)
  }

  /** Returns the sequences whose time has come. */
  expired(now: number): ReadonlyArray<SequenceRun> {
    return this.#deadlines.take(now)
  }
}
