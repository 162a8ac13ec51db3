/** Numbers of a simulation: what comes in, and what comes out. */

/** @throws RangeError for any other number */
export const requireInteger = (name: string, value: number, minimum: number) => {
  if (Number.isSafeInteger(value) && value >= minimum) return
  throw new RangeError(`${name} must be an integer of at least ${minimum}, but ${value} was given`)
}

/** Milliseconds; NaN without any requests. */
export interface Latency {
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly max: number
}

export const latencyOf = (millis: ReadonlyArray<number>): Latency => {
  const sorted = Float64Array.from(millis).toSorted()
  const at = (part: number) => sorted[Math.ceil(sorted.length * part) - 1] ?? Number.NaN
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1) }
}
