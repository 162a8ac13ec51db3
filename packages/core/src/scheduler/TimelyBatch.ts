/**
 * Chooses which requests at the front of a queue start now so that they end in time together. A batch takes longer the
 * more rows it has, so further requests may make the first ones late, which were admitted with fewer behind them. Pure:
 * times are arguments, in nanoseconds.
 */
import type { QueuedRequest } from "./QueuedRequest.ts"

export interface TimelyBatch {
  /** Requests that cannot end in time, or are worth less than those behind them. */
  readonly late: ReadonlyArray<QueuedRequest>
  /** Rows of the others that start now; infinite without a limit. */
  readonly rows: number
}

/** Rows in a time by which a batch without the first requests must be better than one that is shorter. */
const better = 1.1

/** `shortest` is the time that a batch with so many rows takes at least; `maxRows` is at least 1. */
export const choose = (
  front: Iterable<QueuedRequest>,
  maxRows: number,
  now: number,
  shortest: (rows: number) => number,
): TimelyBatch => {
  const late: Array<QueuedRequest> = []
  const timely: Array<QueuedRequest> = []
  let rows = 0
  /** Rows of those before the first one that would make one of them late. */
  let together = 0
  let firstDue = Infinity
  let isLong = false
  for (const queued of front) {
    const all = rows + queued.request.rows
    if (rows > 0 && all > maxRows) break
    const end = now + shortest(all)
    if (end > queued.dueAt) {
      late.push(queued)
      continue
    }
    timely.push(queued)
    rows = all
    firstDue = Math.min(firstDue, queued.dueAt)
    isLong ||= end > firstDue
    if (!isLong) together = rows
  }
  if (!isLong) return { late, rows: Infinity }
  const end = now + shortest(rows)
  const urgent = timely.filter(({ dueAt }) => dueAt < end)
  const others = urgent.reduce((left, { request }) => left - request.rows, rows)
  if (others * shortest(together) <= better * together * shortest(others)) return { late, rows: together }
  return { late: [...late, ...urgent], rows: Infinity }
}
