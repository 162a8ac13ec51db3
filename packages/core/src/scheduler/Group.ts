/** A list through its entries, in the order in which they go: what a queue is made of. Never empty while it is in one. */
import type { Entry } from "./Entry.ts"

export interface Group {
  readonly key: string
  /** Goes as it is, and takes no more. */
  readonly isClosed: boolean
  first: Entry
  last: Entry
  rows: number
}

export const open = (key: string, entry: Entry, isClosed: boolean): Group =>
  (entry.group = { key, isClosed, first: entry, last: entry, rows: entry.request.rows })

export const append = (group: Group, entry: Entry): void => {
  entry.group = group
  entry.previous = group.last
  group.last.next = entry
  group.last = entry
  group.rows += entry.request.rows
}

/** Whether none is left. */
export const remove = (group: Group, entry: Entry): boolean => {
  const { previous, next } = entry
  group.rows -= entry.request.rows
  if (previous !== undefined) previous.next = next
  else if (next !== undefined) group.first = next
  if (next !== undefined) next.previous = previous
  else if (previous !== undefined) group.last = previous
  entry.group = entry.previous = entry.next = undefined
  return previous === undefined && next === undefined
}

export const entries = ({ first }: Group): Array<Entry> => {
  const all: Array<Entry> = []
  for (let entry: Entry | undefined = first; entry !== undefined; entry = entry.next) all.push(entry)
  return all
}
