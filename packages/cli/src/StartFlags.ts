/**
 * Flags of V8 while a server starts, which main.ts sets before it loads anything else:
 *
 * - The young generation of V8's heap would grow by what survives, and never shrink. While a server starts, most
 *   objects survive: its modules. Its growth factor is 1.
 * - V8's optimizing compilers take 10 MB, and gain nothing for code that runs a few times. They are off.
 *
 * A server may serve some models while it loads others, for minutes, so the flags also have a time limit.
 */
import { setFlagsFromString } from "node:v8"

/** Lets the young generation grow with the load, and V8 compile code for it, as by default. */
export const reset = (): void => {
  setFlagsFromString("--semi-space-growth-factor=2")
  setFlagsFromString("--maglev")
  setFlagsFromString("--turbofan")
}

/** Milliseconds after which the flags are reset, if the server has not started by then. */
const limit = 10_000

export const resetAtLimit = (run = reset): void => void setTimeout(run, limit).unref()
