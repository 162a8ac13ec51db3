/** Operations on a group of queued requests, a doubly linked list: a request joins and leaves in constant time. */
import type { QueuedRequest, RequestGroup } from "./QueuedRequest.ts"

export const open = (key: string, queued: QueuedRequest, isClosed: boolean): RequestGroup =>
  (queued.group = { key, isClosed, first: queued, last: queued, rows: queued.request.rows })

export const append = (group: RequestGroup, queued: QueuedRequest): void => {
  queued.group = group
  queued.previous = group.last
  group.last.next = queued
  group.last = queued
  group.rows += queued.request.rows
}

/** Whether none is left. */
export const remove = (group: RequestGroup, queued: QueuedRequest): boolean => {
  const { previous, next } = queued
  group.rows -= queued.request.rows
  if (previous !== undefined) previous.next = next
  else if (next !== undefined) group.first = next
  if (next !== undefined) next.previous = previous
  else if (previous !== undefined) group.last = previous
  queued.group = queued.previous = queued.next = undefined
  return previous === undefined && next === undefined
}

export const requests = ({ first }: RequestGroup): Array<QueuedRequest> => {
  const all: Array<QueuedRequest> = []
  for (let queued: QueuedRequest | undefined = first; queued !== undefined; queued = queued.next) all.push(queued)
  return all
}
