/** Timers of any length. Node's timers fire after 1 ms if the delay exceeds 2^31 - 1 ms, about 24 days. */

export const maxDelay = 2 ** 31 - 1

/** Starts a timer. Returns undefined if the delay is too long for a timer; `clearTimeout` accepts that. */
export const start = (run: () => void, milliseconds: number): NodeJS.Timeout | undefined =>
  milliseconds > maxDelay ? undefined : setTimeout(run, milliseconds)
