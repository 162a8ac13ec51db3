/**
 * Flags of V8 while a server starts, which main.ts sets before it loads anything else:
 *
 * - The young generation of V8's heap would grow by what survives, and never shrink. While a server starts, most
 *   objects survive: its modules. Its growth factor is 1.
 * - V8's optimizing compilers take 10 MB, and gain nothing for code that runs a few times. They are off.
 */
import { setFlagsFromString } from "node:v8"

/** Lets the young generation grow with the load, and V8 compile code for it, as by default. */
export const reset = (): void => {
  setFlagsFromString("--semi-space-growth-factor=2")
  setFlagsFromString("--maglev")
  setFlagsFromString("--turbofan")
}
