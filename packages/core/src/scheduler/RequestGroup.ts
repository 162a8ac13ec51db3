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

/** Inserts the request behind those of earlier turns, and of its own. */
export const insert = (group: RequestGroup, queued: QueuedRequest): void => {
  const { turn } = queued
  if (turn < group.last.turn) {
    const turns = (group.turns ??= turnsOf(group))
    let at = turn
    while (at >= group.first.turn && !turns.has(at)) at -= 1
    place(group, queued, turns.get(at))
  } else append(group, queued)
  group.turns?.set(turn, queued)
}

const turnsOf = (group: RequestGroup): Map<number, QueuedRequest> =>
  new Map(requests(group).map((queued) => [queued.turn, queued]))

/** Not at the end. */
const place = (group: RequestGroup, queued: QueuedRequest, previous: QueuedRequest | undefined): void => {
  const next = previous === undefined ? group.first : previous.next
  queued.group = group
  queued.previous = previous
  queued.next = next
  if (previous === undefined) group.first = queued
  else previous.next = queued
  if (next !== undefined) next.previous = queued
  group.rows += queued.request.rows
}

/** Whether none is left. */
export const remove = (group: RequestGroup, queued: QueuedRequest): boolean => {
  const { previous, next } = queued
  if (group.turns?.get(queued.turn) === queued) {
    if (previous?.turn === queued.turn) group.turns.set(queued.turn, previous)
    else group.turns.delete(queued.turn)
  }
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
