/** An event loop that reads each request 40 ms after its arrival. */
import { LateReading } from "./LateReading.ts"
import type { Limit } from "./LimitReports.ts"

export const make = (): { readonly lateReading: LateReading; readonly acted: ReadonlyArray<Limit> } => {
  const acted: Array<Limit> = []
  let now = 0
  // Every request is read in a turn of its own.
  const loop = { now: () => (now += 80), slept: () => 0, afterReads: (end: () => void) => end() }
  const lateReading = new LateReading({ acted: (limit) => void acted.push(limit) }, loop)
  for (let turn = 0; turn < 4; turn++) lateReading.waited()
  return { lateReading, acted }
}
