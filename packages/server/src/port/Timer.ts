/** Timers of any length. Node's timers fire after 1 ms if the delay exceeds 2^31 - 1 ms, about 24 days. */

export const maxDelay = 2 ** 31 - 1

/** Undefined where it is longer than a timer can be, which is never; `clearTimeout` takes that as well. */
export const start = (run: () => void, milliseconds: number): NodeJS.Timeout | undefined =>
  milliseconds > maxDelay ? undefined : setTimeout(run, milliseconds)
