/**
 * One session of a caller: sends the requests of a sequence one by one, and marks its first and its last one. The calls
 * of SessionCalls.ts and of promise clients are built on it.
 */
import { constVoid } from "effect/Function"
import { Effect, Result, Stream } from "effect"
import { type InferenceError, QueueFull, type SequenceNotFound } from "../error/InferenceError.ts"
import * as IdleLimit from "../request/IdleLimit.ts"
import type { Cancel, Reply, Request, Response } from "../request/Request.ts"
import { randomId, type SequenceId } from "../request/SequencePosition.ts"
import * as SessionParameters from "../request/SessionParameters.ts"
import { type CallableModel, decodedStream, submitSingle } from "../running/CallableModel.ts"
import type { ResponseReader } from "../running/ResponseStream.ts"
import type { ModelInterface } from "../wire/ModelInterface.ts"
import * as LostSession from "./LostSession.ts"
import type { SessionOptions } from "./Session.ts"
import * as SessionId from "./SessionId.ts"

/** The part of a RunningModel that a session needs. */
interface SessionModel {
  readonly description: Pick<ModelInterface, "name" | "signature">
  readonly reachedBy: (caller: undefined) => { readonly calls: CallableModel }
}

/** Calls of one session that may wait for the one before them. */
export const maxWaiting = 1024

export class SequenceCall {
  readonly id: SequenceId
  readonly #model: SessionModel
  /** Its limit of idle time, as the value of its parameter. */
  readonly #maxIdle: bigint | undefined
  /** Whether its requests have numbers, so that the server knows a request that is sent again. */
  readonly #retries: boolean
  #lastNumber = 0n
  /** Calls that wait for the one before them. */
  readonly #waiting = new Set<() => void>()
  #isBusy = false
  /** Whether a request was sent: the server may have the sequence. */
  #isSent = false
  /** Whether a request has succeeded: the server has had the sequence. */
  #isStarted = false
  /** Whether the model is called for streams, which a decoupled model needs. */
  #streams = false
  /** Why no request can follow. */
  #over: SequenceNotFound | undefined

  /** @throws TypeError if `maxIdle` is not longer than 0, or if no sequence may have the id */
  constructor(model: SessionModel, { id, maxIdle, retries = false }: SessionOptions = {}) {
    this.#model = model
    this.id = id === undefined ? randomId() : SessionId.chosen(id)
    this.#retries = retries
    this.#maxIdle = maxIdle === undefined ? undefined : IdleLimit.parameter(maxIdle)
  }

  /** Sends the request once those before it have ended. */
  submit(model: CallableModel, request: Request, isEnd: boolean, reply: Reply): Cancel {
    if (this.#waiting.size >= maxWaiting) {
      reply(Result.fail(this.#full))
      return constVoid
    }
    let cancel: Cancel = constVoid
    const leave = this.#enter(() => {
      const begun = this.#begin(request, isEnd, this.#retries)
      if (Result.isFailure(begun)) {
        this.#next()
        return reply(Result.fail(begun.failure))
      }
      let isOpen = true
      const ended = () => {
        if (!isOpen) return false
        isOpen = false
        return true
      }
      const cancelRequest = submitSingle(model, begun.success, (outcome) => {
        if (!ended()) return
        const settled = this.#settle(outcome, isEnd)
        this.#next()
        reply(settled)
      })
      cancel = () => {
        if (!ended()) return
        cancelRequest()
        this.#next()
      }
    })
    return () => {
      leave()
      cancel()
    }
  }

  /** The same with any number of responses. The next request follows the end of the stream. */
  stream<A, E>(
    model: CallableModel,
    request: Request,
    isEnd: boolean,
    { decode, failure }: ResponseReader<A, E>,
  ): Stream.Stream<A, E> {
    return Stream.unwrap(
      Effect.gen({ self: this }, function* () {
        const turn = Effect.mapError(this.#turn, failure)
        yield* Effect.acquireRelease(turn, () => Effect.sync(() => this.#next()))
        const begun = yield* Effect.fromResult(Result.mapError(this.#begin(request, isEnd, false), failure))
        this.#streams = true
        const reader = { decode, failure: (error: InferenceError) => failure(this.#failed(error)) }
        return decodedStream(model, begun, reader).pipe(Stream.onEnd(Effect.sync(() => this.#succeeded(isEnd))))
      }),
    )
  }

  /** Ends the sequence where the server still has it. Completes with the reply of the server, which may refuse it. */
  get close(): Effect.Effect<void> {
    return Effect.callback((resume) => {
      const leave = this.#enter(() => {
        const needless = !this.#isSent || this.#over !== undefined
        this.#over ??= this.#ended
        this.#next()
        if (needless) return resume(Effect.void)
        const { signature } = this.#model.description
        const request: Request = {
          id: "",
          inputs: signature.inputs.map(() => undefined),
          rows: 1,
          parameters: SessionParameters.closing(this.id),
          deadline: undefined,
        }
        const { calls } = this.#model.reachedBy(undefined)
        const emit = () => Effect.void
        calls.submit(this.#streams ? { ...request, emit } : request, () => resume(Effect.void))
      })
      return Effect.sync(leave)
    })
  }

  /** Completes when the session is free, and takes it. */
  get #turn(): Effect.Effect<void, QueueFull> {
    return Effect.callback((resume) => {
      if (this.#waiting.size >= maxWaiting) return resume(Effect.fail(this.#full))
      return Effect.sync(this.#enter(() => resume(Effect.void)))
    })
  }

  /** Calls `begin` when no request is under way, perhaps at once. The result leaves the line of those that wait. */
  #enter(begin: () => void): () => void {
    if (!this.#isBusy) {
      this.#isBusy = true
      begin()
      return constVoid
    }
    this.#waiting.add(begin)
    return () => this.#waiting.delete(begin)
  }

  #next(): void {
    this.#isBusy = false
    for (const begin of this.#waiting) {
      this.#waiting.delete(begin)
      this.#isBusy = true
      return begin()
    }
  }

  /** The request at its position, or why the session takes none. */
  #begin(request: Request, isEnd: boolean, isNumbered: boolean): Result.Result<Request, InferenceError> {
    if (this.#over !== undefined) return Result.fail(this.#over)
    this.#isSent = true
    const position = {
      isStart: !this.#isStarted,
      isEnd,
      maxIdle: this.#maxIdle,
      number: isNumbered ? ++this.#lastNumber : undefined,
    }
    const parameters = SessionParameters.positioned(request.parameters, this.id, position)
    return Result.succeed({ ...request, parameters })
  }

  #settle(outcome: Result.Result<Response, InferenceError>, isEnd: boolean): Result.Result<Response, InferenceError> {
    if (Result.isFailure(outcome)) return Result.fail(this.#failed(outcome.failure))
    this.#succeeded(isEnd)
    return outcome
  }

  /** An end that has failed may not have reached the model: `close` ends the sequence then. */
  #succeeded(isEnd: boolean): void {
    this.#isStarted = true
    if (isEnd) this.#over = this.#ended
  }

  #failed(error: InferenceError): InferenceError {
    const lost = LostSession.of(this.#model.description.name, error, this.#isStarted)
    this.#over ??= lost
    return lost ?? error
  }

  get #full(): QueueFull {
    const rule = `${maxWaiting} calls wait already. Await a call before the next one`
    return new QueueFull({ message: `the session of model '${this.#model.description.name}' is full: ${rule}` })
  }

  get #ended(): SequenceNotFound {
    return LostSession.ended(this.#model.description.name)
  }
}
