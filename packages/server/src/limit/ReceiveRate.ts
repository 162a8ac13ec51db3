/**
 * Minimum rate of request bodies, checked in periods. Slow clients would otherwise hold memory for as long as the
 * timeout of a whole request allows. The rate is that of Kestrel's default.
 */

/** Time between two checks, in milliseconds. */
export const periodMillis = 10_000

/** Minimum average rate over a period, in bytes per second. */
export const minRate = 240

/** Minimum bytes of a period. */
export const minBytes = (minRate * periodMillis) / 1000

/** Calls `tooSlow` once if a body arrives below the rate. `received` returns the bytes so far. */
export const watch = (received: () => number, tooSlow: () => void): { readonly stop: () => void } => {
  let before = 0
  const timer = setInterval(() => {
    const now = received()
    if (now - before < minBytes) {
      clearInterval(timer)
      tooSlow()
    }
    before = now
  }, periodMillis)
  return { stop: () => clearInterval(timer) }
}
