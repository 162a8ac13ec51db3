/**
 * The answers of a model that has to give them in the order of its requests: what is ready waits here until every request
 * ahead of it has been answered, or has left. Who leaves the queue without an instance, or goes away, keeps nobody back.
 */
import { Effect, type Result } from "effect"
import type { QueuedRequest } from "./QueuedRequest.ts"
import type { InferenceError } from "../error/InferenceError.ts"
import type { Emit, Response } from "../request/Request.ts"

type Outcome = Result.Result<Response, InferenceError>

export class Ordering {
  readonly #tell: (entry: QueuedRequest, outcome: Outcome) => void
  /** In the order of the requests; undefined for those that are not ready. */
  readonly #outcomes = new Map<QueuedRequest, Outcome | undefined>()
  /** Of those whose responses wait for their turn. */
  readonly #turns = new Map<QueuedRequest, () => void>()
  #held = 0

  constructor(tell: (entry: QueuedRequest, outcome: Outcome) => void) {
    this.#tell = tell
  }

  /** Answers that are ready and wait. */
  get held(): number {
    return this.#held
  }

  add(entry: QueuedRequest): void {
    this.#outcomes.set(entry, undefined)
  }

  settle(entry: QueuedRequest, outcome: Outcome): void {
    this.#outcomes.set(entry, outcome)
    this.#held += 1
    this.#goOn()
  }

  /** Whether its answer is ready and waits. */
  holds(entry: QueuedRequest): boolean {
    return this.#outcomes.get(entry) !== undefined
  }

  /** Its answer will not be told here. Harmless where it has been. */
  leave(entry: QueuedRequest): void {
    if (this.holds(entry)) this.#held -= 1
    if (!this.#outcomes.delete(entry)) return
    this.#turns.get(entry)?.()
    this.#goOn()
  }

  /** Holds responses back until it is their request's turn. */
  inTurn(entry: () => QueuedRequest, emit: Emit): Emit {
    return (response) =>
      Effect.andThen(
        this.#turn(entry),
        Effect.suspend(() => (entry().done ? Effect.void : emit(response))),
      )
  }

  #turn(entry: () => QueuedRequest): Effect.Effect<void> {
    return Effect.callback((resume) => {
      const waiting = entry()
      const { value: first } = this.#outcomes.keys().next()
      if (first === waiting || !this.#outcomes.has(waiting)) resume(Effect.void)
      else this.#turns.set(waiting, () => resume(Effect.void))
      return Effect.sync(() => this.#turns.delete(waiting))
    })
  }

  #goOn(): void {
    for (const [entry, outcome] of this.#outcomes) {
      if (outcome === undefined) {
        this.#turns.get(entry)?.()
        return
      }
      this.#outcomes.delete(entry)
      this.#held -= 1
      this.#tell(entry, outcome)
    }
  }
}
