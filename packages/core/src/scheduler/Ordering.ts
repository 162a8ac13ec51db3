/**
 * Orders the replies of a model that preserves the order of its requests: an outcome waits until every earlier request
 * has its reply, or was rejected or cancelled.
 */
import { Effect, type Result } from "effect"
import type { QueuedRequest } from "./QueuedRequest.ts"
import type { InferenceError } from "../error/InferenceError.ts"
import type { Emit, Response } from "../request/Request.ts"

type Outcome = Result.Result<Response, InferenceError>

export class Ordering {
  readonly #reply: (queued: QueuedRequest, outcome: Outcome) => void
  /** In the order of the requests; undefined for those that are not ready. */
  readonly #outcomes = new Map<QueuedRequest, Outcome | undefined>()
  /** Of those whose responses wait for their turn. */
  readonly #turns = new Map<QueuedRequest, () => void>()
  #held = 0

  constructor(reply: (queued: QueuedRequest, outcome: Outcome) => void) {
    this.#reply = reply
  }

  /** Number of outcomes that are ready and wait. */
  get held(): number {
    return this.#held
  }

  add(queued: QueuedRequest): void {
    this.#outcomes.set(queued, undefined)
  }

  settle(queued: QueuedRequest, outcome: Outcome): void {
    this.#outcomes.set(queued, outcome)
    this.#held += 1
    this.#replyReady()
  }

  /** Whether the outcome of the request is ready and waits. */
  holds(queued: QueuedRequest): boolean {
    return this.#outcomes.get(queued) !== undefined
  }

  /** Removes a request, which needs no reply from here. Does nothing after its reply. */
  leave(queued: QueuedRequest): void {
    if (this.holds(queued)) this.#held -= 1
    if (!this.#outcomes.delete(queued)) return
    this.#turns.get(queued)?.()
    this.#replyReady()
  }

  /** Holds responses back until it is their request's turn. */
  inTurn(queued: () => QueuedRequest, emit: Emit): Emit {
    return (response) =>
      Effect.andThen(
        this.#turn(queued),
        Effect.suspend(() => (queued().done && !queued().continues ? Effect.void : emit(response))),
      )
  }

  #turn(queued: () => QueuedRequest): Effect.Effect<void> {
    return Effect.callback((resume) => {
      const waiting = queued()
      const { value: first } = this.#outcomes.keys().next()
      if (first === waiting || !this.#outcomes.has(waiting)) resume(Effect.void)
      else this.#turns.set(waiting, () => resume(Effect.void))
      return Effect.sync(() => this.#turns.delete(waiting))
    })
  }

  #replyReady(): void {
    for (const [queued, outcome] of this.#outcomes) {
      if (outcome === undefined) {
        this.#turns.get(queued)?.()
        return
      }
      this.#outcomes.delete(queued)
      this.#held -= 1
      this.#reply(queued, outcome)
    }
  }
}
