/** Operations on a group of queued requests, a doubly linked list: a request joins and leaves in constant time. */
import type { QueuedRequest, RequestGroup } from "./QueuedRequest.ts"

export const open = (key: string, entry: QueuedRequest, isClosed: boolean): RequestGroup =>
  (entry.group = { key, isClosed, first: entry, last: entry, rows: entry.request.rows })

export const append = (group: RequestGroup, entry: QueuedRequest): void => {
  entry.group = group
  entry.previous = group.last
  group.last.next = entry
  group.last = entry
  group.rows += entry.request.rows
}

/** Whether none is left. */
export const remove = (group: RequestGroup, entry: QueuedRequest): boolean => {
  const { previous, next } = entry
  group.rows -= entry.request.rows
  if (previous !== undefined) previous.next = next
  else if (next !== undefined) group.first = next
  if (next !== undefined) next.previous = previous
  else if (previous !== undefined) group.last = previous
  entry.group = entry.previous = entry.next = undefined
  return previous === undefined && next === undefined
}

export const entries = ({ first }: RequestGroup): Array<QueuedRequest> => {
  const all: Array<QueuedRequest> = []
  for (let entry: QueuedRequest | undefined = first; entry !== undefined; entry = entry.next) all.push(entry)
  return all
}
