/** Requests that a model has accepted and that have not ended, and whoever waits until there are none. */
import type { Effect } from "effect"
import { Latch } from "effect"

/** Releases what was kept. Harmless when it is called again. */
export type Release = () => void

export class Unanswered {
  #count = 0
  readonly #none = Latch.makeUnsafe(true)

  get count(): number {
    return this.#count
  }

  /** Completes once there are none, and whoever keeps it waiting has let go. */
  readonly drained: Effect.Effect<void> = this.#none.await

  begin(): void {
    if (this.#count === 0) this.#none.closeUnsafe()
    this.#count += 1
  }

  end(): void {
    this.#count -= 1
    if (this.#count === 0) this.#none.openUnsafe()
  }

  /** Keeps `drained` waiting until its result is called. */
  keep(): Release {
    let isKept = true
    this.begin()
    return () => {
      if (isKept) this.end()
      isKept = false
    }
  }
}
