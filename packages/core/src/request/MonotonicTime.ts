/**
 * Time for deadlines and idle times, in milliseconds since an arbitrary moment. Unlike the wall clock, it does not jump
 * when the machine's time is corrected.
 */
import { Clock, Context } from "effect"

const systemClock = Context.get(Context.empty(), Clock.Clock)

/** Returns the time of a clock. Default: that of the system. */
export const millis = (clock: Clock.Clock = systemClock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
