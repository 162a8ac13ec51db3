/** One point of a sweep: a number of requests in flight, or of requests per second. */
import type { Distribution } from "@nereid/core/internal/synthetic/Arrivals"

export type Level = { readonly concurrency: number } | OpenLevel

export interface OpenLevel {
  readonly perSecond: number
  readonly distribution: Distribution
  /** Set for a rate that is a multiple of the server's capacity. */
  readonly overload?: { readonly times: number; readonly capacity: number }
}

/** A multiple of the capacity, which a closed loop with so many requests in flight measures before the level. */
export interface Multiple {
  readonly times: number
  readonly concurrency: number
  readonly distribution: Distribution
}

export const isOpen = (level: Level): level is OpenLevel => "perSecond" in level

/** Formats a level for people: `16 at a time`, `250/s poisson`. */
export const print = (level: Level | Multiple): string => {
  if ("times" in level) return `${level.times} times the capacity`
  return isOpen(level) ? `${level.perSecond} requests/s, ${level.distribution}` : `concurrency ${level.concurrency}`
}

/** Maximum number of levels; more are a mistake. */
const maxLevels = 1000

/**
 * Numbers above 0, in the order given: `1,4,16`, or from one to another, `1:16`, in steps, `1:16:5`, or by a factor,
 * `1:64:x2`.
 * @throws Error for anything else
 */
export const numbers = (text: string, integer: boolean): ReadonlyArray<number> => {
  const found = text.split(",").map((part) => {
    const [, from = "", to = from, factor, step = "1"] =
      /^\s*([\d.]+)(?::([\d.]+)(?::(x)?([\d.]+))?)?\s*$/.exec(part) ?? []
    const [first, last, by] = [Number(from), Number(to), Number(step)]
    return factor === undefined ? steps(first, last, by) : factors(first, last, by)
  })
  const all = found.flat()
  const sound = found.every((part) => part.length > 0) && all.every((number) => !integer || Number.isInteger(number))
  if (sound && all.length <= maxLevels) return all
  const expected = integer ? "integers of at least 1" : "numbers above 0"
  throw new Error(`${expected}, such as 1,4,16 or 1:16:5 or 1:64:x2, at most ${maxLevels}`)
}

/** Returns the levels up to `last`; empty if `by` leads nowhere. */
const steps = (first: number, last: number, by: number): ReadonlyArray<number> => {
  const length = first > 0 && by > 0 ? Math.floor((last - first) / by + 1e-9) + 1 : 0
  return Array.from({ length: Math.min(maxLevels + 1, Math.max(0, length)) }, (_, index) => first + index * by)
}

const factors = (first: number, last: number, by: number): ReadonlyArray<number> => {
  const found: Array<number> = []
  if (!(first > 0 && by > 1)) return found
  for (let next = first; next <= last && found.length <= maxLevels; next *= by) found.push(next)
  return found
}
