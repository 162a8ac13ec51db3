/** The requests of all sequences that have not ended. LiveSequences.ts has the sequences. */
import { earliest } from "../scheduler/Queue.ts"
import type { QueuedRequest } from "../scheduler/QueuedRequest.ts"
import { RequestPlaces } from "./RequestPlaces.ts"
import type { SequenceRun } from "./SequenceRun.ts"

export class SequenceRequests {
  readonly #runs = new RequestPlaces()
  #queued = 0

  /** Requests that no instance executes. */
  get queued(): number {
    return this.#queued
  }

  /** When the request that has waited longest was submitted; undefined if none waits. Looks at all requests. */
  get oldest(): number | undefined {
    return this.#queued === 0 ? undefined : earliest(this.all(), Infinity)
  }

  /** Requests that no instance executes, in the order in which they came. */
  all(): Array<QueuedRequest> {
    return [...this.#runs.keys()].filter(({ running }) => running === undefined)
  }

  /** The sequences of the requests, once for each of them. */
  runs(): Iterable<SequenceRun> {
    return this.#runs.values()
  }

  /** The sequence of a request; undefined once the request has ended. */
  runOf(queued: QueuedRequest): SequenceRun | undefined {
    return this.#runs.get(queued)
  }

  /** Adds a request of a sequence: a new one, or one that goes on after its execution. */
  add(queued: QueuedRequest, run: SequenceRun): void {
    this.#runs.set(queued, run)
    this.#queued += 1
  }

  /** An instance executes the requests from now on. */
  take(requests: ReadonlyArray<QueuedRequest>): void {
    for (const { isEmpty } of requests) if (!isEmpty) this.#queued -= 1
  }

  /** The request has been executed. */
  end(queued: QueuedRequest): void {
    this.#runs.delete(queued)
  }

  /** The request leaves without an execution. */
  leave(queued: QueuedRequest): void {
    this.#runs.delete(queued)
    this.#queued -= 1
  }

  /** Takes out the waiting requests of a sequence: all, or those from one position to another. */
  takeWaiting(run: SequenceRun, from = 0, to = run.waiting.length): ReadonlyArray<QueuedRequest> {
    const taken = run.waiting.splice(from, to - from)
    for (const queued of taken) this.leave(queued)
    return taken
  }

  /** Takes out all requests of a sequence that are not executing. */
  takeAll(run: SequenceRun): ReadonlyArray<QueuedRequest> {
    const waiting = this.takeWaiting(run)
    const { issued } = run
    if (issued === undefined || issued.running !== undefined) return waiting
    run.lane?.withdraw(issued)
    run.issued = undefined
    this.leave(issued)
    return [issued, ...waiting]
  }
}
