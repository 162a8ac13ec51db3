/**
 * Calls at a fixed rate that leaves a server idle most of the time, so that the CPU time of waiting shows: of a model
 * with a queue delay, and of the same model without one.
 */
import * as Lane from "@nereid/bench/internal/load/Lane"
import * as Metronome from "@nereid/bench/internal/load/Metronome"
import * as OpenLoop from "@nereid/bench/internal/load/OpenLoop"
import * as Arrivals from "@nereid/core/internal/synthetic/Arrivals"
import type { Child } from "./Child.ts"
import { type Comparison, compare, type Settings } from "./Comparison.ts"
import * as Measured from "./Measured.ts"
import type { Delay } from "./models.ts"
import * as RequestLoad from "./RequestLoad.ts"
import * as Side from "./Side.ts"

/** Requests per second: further apart than the longest delay, so that each one waits alone. */
const perSecond = 150

/** A model with this delay in one process, beside the one without a delay in another. */
export const measure = async (
  [delayed, other]: readonly [Child, Child],
  delay: Delay,
  settings: Settings,
): Promise<Comparison> => {
  const side = async (child: Child, millis: Delay): Promise<Side.Side> => {
    const load = RequestLoad.unary(`waiting_${millis}`, 1)
    const target = RequestLoad.target(child, load, await RequestLoad.replyLength(child, load))
    const busy = Side.server(child, target, 4, 64)
    // So few requests would not warm up the code.
    await busy.run(settings.seconds)
    return { ...busy, run: (seconds) => atRate(target, seconds) }
  }
  const name = `waiting-${delay}`
  return compare(name, await side(delayed, delay), await side(other, 0), settings)
}

const atRate = async (target: Parameters<typeof Lane.openAll>[0], seconds: number): Promise<Measured.Measured> => {
  const lanes = await Lane.openAll(target, 1)
  const clock = Metronome.start()
  try {
    const arrivals = Arrivals.constant(perSecond)
    return Measured.of(await OpenLoop.run(lanes, { arrivals, clock, seconds, maxOutstanding: 64, perLane: 64 }))
  } finally {
    clock.close()
    for (const lane of lanes) lane.close()
  }
}
