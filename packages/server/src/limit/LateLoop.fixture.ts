/** An event loop that reads each request 40 ms after its arrival. */
import { LateReading } from "./LateReading.ts"
import type { Limit } from "./LimitReports.ts"

export const make = (): { readonly lateReading: LateReading; readonly acted: ReadonlyArray<Limit> } => {
  const acted: Array<Limit> = []
  let now = 0
  let reads = 0
  let end = () => {}
  const loop = {
    /** Each turn reads four requests. */
    now: () => {
      if (reads++ % 4 === 0) {
        end()
        now += 80
      }
      return now
    },
    slept: () => 0,
    afterReads: (call: () => void) => {
      end = call
    },
  }
  const lateReading = new LateReading({ acted: (limit) => void acted.push(limit) }, loop)
  for (let read = 0; read < 16; read++) lateReading.waited()
  return { lateReading, acted }
}
