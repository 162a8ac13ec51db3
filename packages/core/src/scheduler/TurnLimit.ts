/**
 * Limits how many batches that end at once share a turn of the event loop: a turn for each batch would cost more than a
 * short handler, and a turn without a limit would keep all other callbacks waiting. Not for batches that end later.
 */

/** Number of batches in a turn. */
export const maxBatches = 64

/** Nanoseconds after which a turn starts no further batch. */
export const maxNanos = 2e6

export class TurnLimit {
  #batches = 0
  #startedAt = 0

  /** A turn begins at this time, in monotonic nanoseconds. */
  begin(now: number): void {
    this.#batches = 0
    this.#startedAt = now
  }

  /** Counts a batch that has ended at this time; returns whether another one may start in this turn. */
  allows(now: number): boolean {
    this.#batches += 1
    return this.#batches < maxBatches && now - this.#startedAt < maxNanos
  }
}
