/** Batches that are to be executed again, as they are, ahead of all that waits. Their entries leave in O(1), too. */
import type { Entry } from "./Entry.ts"
import * as Group from "./Group.ts"

export class Retries {
  readonly #groups = new Set<Group.Group>()

  add([first, ...rest]: ReadonlyArray<Entry>): void {
    if (first === undefined) return
    const group = Group.open("", first, true)
    for (const entry of rest) Group.append(group, entry)
    this.#groups.add(group)
  }

  /** Of one of its groups. */
  remove(group: Group.Group, entry: Entry): void {
    if (Group.remove(group, entry)) this.#groups.delete(group)
  }

  /** Those that are next; empty for none. They stay until they are removed. */
  next(): ReadonlyArray<Entry> {
    for (const group of this.#groups) return Group.entries(group)
    return none
  }

  all(): Array<Entry> {
    return [...this.#groups].flatMap(Group.entries)
  }
}

const none: ReadonlyArray<Entry> = []
