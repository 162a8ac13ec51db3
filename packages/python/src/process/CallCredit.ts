/** How far the responses of a call to another model may be ahead of the code that reads them in its process. */
import { Effect, Exit } from "effect"

export class CallCredit {
  #left: number
  readonly #waiting = new Set<() => void>()

  /** `count`: responses that the process may have unread. */
  constructor(count: number) {
    this.#left = count
  }

  /** Counts a response that was sent to the process. Completes once the process takes more. */
  take(): Effect.Effect<void> {
    this.#left -= 1
    if (this.#left > 0) return Exit.void
    return Effect.callback((resume) => {
      const proceed = () => resume(Exit.void)
      this.#waiting.add(proceed)
      return Effect.sync(() => this.#waiting.delete(proceed))
    })
  }

  /** The process takes as many further responses. */
  give(count: number): void {
    this.#left += count
    if (this.#left <= 0) return
    for (const proceed of this.#waiting) proceed()
    this.#waiting.clear()
  }
}
