/** Batches to execute again, as they are, ahead of all queued requests. A request is removed in O(1). */
import type { QueuedRequest, RequestGroup as Group } from "./QueuedRequest.ts"
import * as RequestGroup from "./RequestGroup.ts"

export class Retries {
  readonly #groups = new Set<Group>()

  add([first, ...rest]: ReadonlyArray<QueuedRequest>): void {
    if (first === undefined) return
    const group = RequestGroup.open("", first, true)
    for (const queued of rest) RequestGroup.append(group, queued)
    this.#groups.add(group)
  }

  /** Removes a request of one of these batches. */
  remove(group: Group, queued: QueuedRequest): void {
    if (RequestGroup.remove(group, queued)) this.#groups.delete(group)
  }

  /** The requests of the next batch; empty for none. They stay until they are removed. */
  next(): ReadonlyArray<QueuedRequest> {
    for (const group of this.#groups) return RequestGroup.requests(group)
    return noRequests
  }

  /** The requests of all batches. */
  all(): Array<QueuedRequest> {
    return [...this.#groups].flatMap(RequestGroup.requests)
  }
}

const noRequests: ReadonlyArray<QueuedRequest> = []
