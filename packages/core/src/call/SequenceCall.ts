/**
 * One session of a caller: sends the requests of a sequence one by one, and marks its first and its last one. The calls
 * of SessionCalls.ts and of promise clients are built on it.
 */
import { constVoid } from "effect/Function"
import { Effect, Result, Stream } from "effect"
import { type InferenceError, QueueFull, SequenceNotFound } from "../error/InferenceError.ts"
import * as IdleLimit from "../request/IdleLimit.ts"
import type { Cancel, Reply, Request, Response } from "../request/Request.ts"
import type { SequenceId } from "../request/SequencePosition.ts"
import * as SessionParameters from "../request/SessionParameters.ts"
import { type CallableModel, decodedStream, submitSingle } from "../running/CallableModel.ts"
import type { ResponseReader } from "../running/ResponseStream.ts"
import type { ModelInterface } from "../wire/ModelInterface.ts"
import type { SessionOptions } from "./Session.ts"

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

  /** @throws TypeError if `maxIdle` is not longer than 0 */
  constructor(model: SessionModel, { id = randomId(), maxIdle, retries = false }: SessionOptions = {}) {
    this.#model = model
    this.id = id
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
        const settled = this.#settle(outcome)
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
  stream<A, E>(model: CallableModel, request: Request, { decode, failure }: ResponseReader<A, E>): Stream.Stream<A, E> {
    return Stream.unwrap(
      Effect.gen({ self: this }, function* () {
        const turn = Effect.mapError(this.#turn, failure)
        yield* Effect.acquireRelease(turn, () => Effect.sync(() => this.#next()))
        const begun = yield* Effect.fromResult(Result.mapError(this.#begin(request, false, false), failure))
        this.#streams = true
        const reader = { decode, failure: (error: InferenceError) => failure(this.#failed(error)) }
        return decodedStream(model, begun, reader).pipe(Stream.onEnd(Effect.sync(() => (this.#isStarted = true))))
      }),
    )
  }

  /** Ends the sequence where the server still has it. Completes with the reply of the server, which may refuse it. */
  get close(): Effect.Effect<void> {
    return Effect.callback((resume) => {
      const leave = this.#enter(() => {
        const needless = !this.#isSent || this.#over !== undefined
        this.#over ??= this.#lost("ended")
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
    if (isEnd) this.#over = this.#lost("ended")
    const position = {
      isStart: !this.#isStarted,
      isEnd,
      maxIdle: this.#maxIdle,
      number: isNumbered ? ++this.#lastNumber : undefined,
    }
    const parameters = SessionParameters.positioned(request.parameters, this.id, position)
    return Result.succeed({ ...request, parameters })
  }

  #settle(outcome: Result.Result<Response, InferenceError>): Result.Result<Response, InferenceError> {
    if (Result.isFailure(outcome)) return Result.fail(this.#failed(outcome.failure))
    this.#isStarted = true
    return outcome
  }

  #failed(error: InferenceError): InferenceError {
    const lost = error._tag === "SequenceNotFound" ? error : this.#isStarted ? unexplained(error) : undefined
    if (lost === undefined) return error
    this.#over = this.#isStarted ? restarted(lost) : lost
    return this.#over
  }

  get #full(): QueueFull {
    const rule = `${maxWaiting} calls wait already. Await a call before the next one`
    return new QueueFull({ message: `the session of model '${this.#model.description.name}' is full: ${rule}` })
  }

  #lost(reason: "ended"): SequenceNotFound {
    return new SequenceNotFound({ message: `the session of model '${this.#model.description.name}' has ended`, reason })
  }
}

/** The error of a server of Triton, which does not say why it has no sequence; undefined for any other error. */
const unexplained = ({ _tag, message }: InferenceError): SequenceNotFound | undefined =>
  _tag === "InvalidRequest" && message.includes("must specify the START flag on the first request of the sequence")
    ? new SequenceNotFound({ message })
    : undefined

/** A server without memory of a sequence that it had started is not the same any more. */
const restarted = ({ message, reason, idleMillis }: SequenceNotFound) =>
  new SequenceNotFound({ message, reason: reason === "neverStarted" ? "restarted" : reason, idleMillis })

/** From 1 to 2^63 - 1: gRPC has signed integers. */
const randomId = (): bigint => {
  const [random = 0n] = crypto.getRandomValues(new BigUint64Array(1))
  return BigInt.asUintN(63, random) || 1n
}
