/** Passes the events of the log on while somebody listens. Events of levels that are off are not passed on. */
import type { LogEvent } from "./LogLine.ts"

export class LogTap {
  readonly #listeners = new Set<(event: LogEvent) => void>()

  /** Calls the listener for every event, until the returned function is called. */
  observe(listener: (event: LogEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  publish(event: LogEvent): void {
    for (const listener of this.#listeners) listener(event)
  }
}
