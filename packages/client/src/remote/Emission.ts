/**
 * Passes the responses of one request from a channel to the caller, one at a time. The channel waits until a response
 * is taken.
 */
import { type Effect, Exit, type Fiber, Result } from "effect"
import type { InferenceError } from "@nereid/core/Errors"
import type { GenerateModel } from "@nereid/core/internal/codec/generate/GenerateMessage"
import type { Cancel, Emit, Response } from "@nereid/core/internal/request/Request"
import type { WireRequest, WireResponse } from "@nereid/core/internal/wire/WireRequest"
import type { Channel, ChannelReceiver, ChannelStream } from "../channel/Channel.ts"

/** Destination and checks of responses. */
export interface ReceiveOptions {
  readonly emit: Emit
  /** Runs effects. */
  readonly fork: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  readonly check: (response: WireResponse) => Result.Result<Response, InferenceError>
  /** Takes the end, once: behind all responses, or where the caller can be sent none. */
  readonly end: (outcome: Result.Result<void, InferenceError>) => void
}

/** Streams all responses of a request. `end` is called once, and not after the returned cancel. */
export const receive = (
  channel: Channel,
  wire: WireRequest,
  timeoutMs: number | undefined,
  model: GenerateModel,
  options: ReceiveOptions,
): Cancel => {
  let stream: ChannelStream | undefined
  const emission = new Emission(
    {
      ...options,
      end: (outcome) => {
        // Harmless where the server has ended it.
        stream?.cancel()
        options.end(outcome)
      },
    },
    (isPaused) => stream?.flow(isPaused),
  )
  const receiver: ChannelReceiver = {
    response: (response) => {
      const checked = options.check(response)
      if (Result.isSuccess(checked)) return emission.push(checked.success)
      stream?.cancel()
      emission.end(Result.fail(checked.failure))
    },
    end: (outcome) => emission.end(outcome),
  }
  stream = channel.stream(wire, timeoutMs, receiver, model)
  return () => {
    emission.cancel()
    stream.cancel()
  }
}

class Emission {
  readonly #options: Pick<ReceiveOptions, "emit" | "fork" | "end">
  /** Pauses or resumes the channel. */
  readonly #flow: (isPaused: boolean) => void
  #waiting: Array<Response> = []
  #emitting: Fiber.Fiber<void, InferenceError> | undefined
  #outcome: Result.Result<void, InferenceError> | undefined
  #isOver = false

  constructor(options: Pick<ReceiveOptions, "emit" | "fork" | "end">, flow: (isPaused: boolean) => void) {
    this.#options = options
    this.#flow = flow
  }

  push(response: Response): void {
    if (this.#isOver) return
    this.#waiting.push(response)
    this.#next()
  }

  /** Ends the emission; no further responses follow. */
  end(outcome: Result.Result<void, InferenceError>): void {
    this.#outcome ??= outcome
    this.#next()
  }

  /** The caller takes no more, and wants no end. */
  cancel(): void {
    this.#isOver = true
    this.#waiting = []
    this.#emitting?.interruptUnsafe()
  }

  #next(): void {
    while (this.#emitting === undefined && !this.#isOver) {
      const response = this.#waiting.shift()
      if (response === undefined) {
        if (this.#outcome !== undefined) this.#settle(this.#outcome)
        return
      }
      const fiber = this.#options.fork(this.#options.emit(response))
      const exit = fiber.pollUnsafe()
      if (exit === undefined) return this.#wait(fiber)
      if (Exit.isFailure(exit)) return this.#failed(exit)
    }
  }

  #wait(fiber: Fiber.Fiber<void, InferenceError>): void {
    this.#emitting = fiber
    this.#flow(true)
    fiber.addObserver((exit) => {
      this.#emitting = undefined
      if (this.#isOver) return
      if (Exit.isFailure(exit)) return this.#failed(exit)
      this.#next()
      if (this.#emitting === undefined) this.#flow(false)
    })
  }

  #failed(exit: Exit.Failure<void, InferenceError>): void {
    const error = Exit.findError(exit)
    // A caller that is interrupted has left.
    if (Result.isSuccess(error)) this.#settle(Result.fail(error.success))
    else this.#isOver = true
  }

  #settle(outcome: Result.Result<void, InferenceError>): void {
    this.#isOver = true
    this.#waiting = []
    this.#options.end(outcome)
  }
}
