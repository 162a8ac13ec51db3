/** Counts the pending requests of a model: accepted and not ended. */
import type { Effect } from "effect"
import { Latch } from "effect"

/** Releases a `keep`. Idempotent. */
export type Release = () => void

export class OpenRequests {
  #count = 0
  readonly #isEmpty = Latch.makeUnsafe(true)

  get count(): number {
    return this.#count
  }

  /** Completes once no request is pending and every `keep` is released. */
  readonly drained: Effect.Effect<void> = this.#isEmpty.await

  begin(): void {
    if (this.#count === 0) this.#isEmpty.closeUnsafe()
    this.#count += 1
  }

  end(): void {
    this.#count -= 1
    if (this.#count === 0) this.#isEmpty.openUnsafe()
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
