/** Batches that are to be executed again, as they are, ahead of all that waits. Their entries leave in O(1), too. */
import type { QueuedRequest, RequestGroup as Group } from "./QueuedRequest.ts"
import * as RequestGroup from "./RequestGroup.ts"

export class Retries {
  readonly #groups = new Set<Group>()

  add([first, ...rest]: ReadonlyArray<QueuedRequest>): void {
    if (first === undefined) return
    const group = RequestGroup.open("", first, true)
    for (const entry of rest) RequestGroup.append(group, entry)
    this.#groups.add(group)
  }

  /** Of one of its groups. */
  remove(group: Group, entry: QueuedRequest): void {
    if (RequestGroup.remove(group, entry)) this.#groups.delete(group)
  }

  /** Those that are next; empty for none. They stay until they are removed. */
  next(): ReadonlyArray<QueuedRequest> {
    for (const group of this.#groups) return RequestGroup.entries(group)
    return none
  }

  all(): Array<QueuedRequest> {
    return [...this.#groups].flatMap(RequestGroup.entries)
  }
}

const none: ReadonlyArray<QueuedRequest> = []
