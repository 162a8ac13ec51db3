/**
 * Lets responses of a request wait for their reader outside of the batch that makes them: a slow reader delays no other
 * request. A request ends once its reader has all of its responses.
 */
import { type Effect, Exit, type Fiber, Result } from "effect"
import { type InferenceError, QueueFull } from "../error/InferenceError.ts"
import type { Cancel, Emit, Reply, Response } from "../request/Request.ts"
import type { Stage } from "../scheduler/SubmitPipeline.ts"

type Fork = <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>

/** Responses that may wait for one reader; the request fails beyond that. */
const limit = 10_000

export const make =
  (fork: Fork): Stage =>
  (next) =>
  (request, reply, counts) => {
    if (request.emit === undefined) return next(request, reply, counts)
    const emission = new Emission(request.emit, fork, reply)
    emission.onFailure = next({ ...request, emit: emission.emit }, (outcome) => emission.end(outcome), counts)
    return () => {
      emission.cancel()
      emission.onFailure()
    }
  }

class Emission {
  readonly #emit: Emit
  readonly #fork: Fork
  readonly #reply: Reply
  readonly #waiting: Array<{ readonly response: Response; readonly isLast: boolean | undefined }> = []
  #emitting: Fiber.Fiber<void, InferenceError> | undefined
  #outcome: Result.Result<Response, InferenceError> | undefined
  #isOver = false
  /** Cancels the request. */
  onFailure: Cancel = () => {}

  constructor(emit: Emit, fork: Fork, reply: Reply) {
    this.#emit = emit
    this.#fork = fork
    this.#reply = reply
  }

  /** Completes at once. Fails if the reader is too slow. */
  readonly emit: Emit = (response, isLast) => {
    if (this.#waiting.length >= limit) {
      return Exit.fail(new QueueFull({ message: `${limit} responses wait for their reader` }))
    }
    this.#waiting.push({ response, isLast })
    this.#next()
    return Exit.void
  }

  /** The request has ended; its reply follows the responses. */
  end(outcome: Result.Result<Response, InferenceError>): void {
    this.#outcome = outcome
    this.#next()
  }

  /** The caller takes nothing more. */
  cancel(): void {
    this.#isOver = true
    this.#waiting.length = 0
    this.#emitting?.interruptUnsafe()
  }

  #next(): void {
    while (this.#emitting === undefined && !this.#isOver) {
      const first = this.#waiting.shift()
      if (first === undefined) {
        if (this.#outcome !== undefined) this.#settle(this.#outcome)
        return
      }
      const exit = this.#begin(this.#emit(first.response, first.isLast))
      if (exit !== undefined && Exit.isFailure(exit)) return this.#failed(exit)
    }
  }

  /** Emits on a separate fiber, unless it is done already; undefined while it goes on. */
  #begin(emitted: Effect.Effect<void, InferenceError>): Exit.Exit<void, InferenceError> | undefined {
    if (Exit.isExit(emitted) && Exit.isSuccess(emitted)) return Exit.void
    const fiber = this.#fork(emitted)
    const exit = fiber.pollUnsafe()
    if (exit !== undefined) return exit
    this.#emitting = fiber
    fiber.addObserver((exit) => this.#emitted(exit))
    return undefined
  }

  #emitted(exit: Exit.Exit<void, InferenceError>): void {
    this.#emitting = undefined
    if (Exit.isFailure(exit)) this.#failed(exit)
    else this.#next()
  }

  #failed(exit: Exit.Failure<void, InferenceError>): void {
    if (this.#isOver) return
    this.onFailure()
    const error = Exit.findError(exit)
    if (Result.isSuccess(error)) this.#settle(Result.fail(error.success))
    else this.cancel()
  }

  #settle(outcome: Result.Result<Response, InferenceError>): void {
    this.#isOver = true
    this.#waiting.length = 0
    this.#reply(outcome)
  }
}
