/** Timers of any length. Node's own fire after 1 ms where they are to take more than 2^31 - 1, about 24 days. */

export const maxDelay = 2 ** 31 - 1

/** Undefined where it is longer than a timer can be, which is never; `clearTimeout` takes that as well. */
export const start = (run: () => void, milliseconds: number): NodeJS.Timeout | undefined =>
  milliseconds > maxDelay ? undefined : setTimeout(run, milliseconds)
