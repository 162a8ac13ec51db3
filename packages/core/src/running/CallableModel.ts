/** The untyped calls of a model: requests in, responses out. Typed calls are in call/TypedCalls.ts. */
import { Effect, Result, type Stream } from "effect"
import { ExecutionFailed, type InferenceError } from "../error/InferenceError.ts"
import type { CallCycleDetector } from "../request/CallCycleDetector.ts"
import type { Cancel, Reply, Request, Response } from "../request/Request.ts"
import * as ResponseStream from "./ResponseStream.ts"

export interface CallableModel {
  /** Whether a request has any number of responses, and not exactly one. */
  readonly decoupled: boolean
  /**
   * Whether a request that has an `emit` is answered through it: true for a decoupled model, and for a remote one,
   * which may be decoupled or not.
   */
  readonly emits: boolean
  readonly submit: (request: Request, reply: Reply) => Cancel
}

export interface ModelCalls extends CallableModel {
  /**
   * Whether anything may use the bytes of a request's inputs after the request has succeeded. Where nothing does, their
   * memory is freed at that moment, and not by the garbage collector.
   */
  readonly keepsInputs: boolean
  /** Whether what keeps inputs has copies of those whose `memory` says so. Default false. */
  readonly copiesInputs?: boolean | undefined
  /** Whether it maps shared memory of requests, and writes outputs there. Default false. */
  readonly mapsShared?: boolean | undefined
  /**
   * Returns the refusal of a request that has not arrived completely, by its deadline and its connection; undefined if
   * it may be admitted. Absent where more of the request decides. `id`: reads the id of the request, with which a full
   * queue refuses it; undefined where it has not arrived.
   */
  readonly preview?:
    | ((deadline: number | undefined, connection: object, id?: () => string | undefined) => InferenceError | undefined)
    | undefined
  /** Timeout of a request without a deadline, in milliseconds; undefined for none. */
  readonly timeout: number | undefined
  /** Finds models that wait for each other in a circle; undefined for a model whose code calls no other model. */
  readonly cycles: CallCycleDetector | undefined
}

/** Requests exactly one response: a decoupled model that gives none or several fails. */
export const submitSingle = (model: CallableModel, request: Request, reply: Reply): Cancel => {
  if (!model.decoupled) return model.submit(request, reply)
  let first: Response | undefined
  const notSingle = (count: string) =>
    reply(Result.fail(new ExecutionFailed({ message: `expected a single response, got ${count}` })))
  const emit = (response: Response) =>
    Effect.sync(() => {
      if (first === undefined) first = response
      else {
        // The stream may have no end.
        cancel()
        notSingle("2 or more")
      }
    })
  const cancel = model.submit({ ...request, emit }, (outcome) => {
    if (Result.isFailure(outcome)) reply(outcome)
    else if (first === undefined) notSingle("0")
    else reply(Result.succeed(first))
  })
  return cancel
}

/** The same as an effect, which cancels the request when it is interrupted. */
export const infer = (model: CallableModel, request: Request): Effect.Effect<Response, InferenceError> =>
  Effect.callback((resume) =>
    Effect.sync(submitSingle(model, request, (outcome) => resume(Effect.fromResult(outcome)))),
  )

/**
 * Streams the responses of one request; one response if the model is not decoupled. Closing the stream cancels the
 * request.
 */
export const stream = (model: CallableModel, request: Request): Stream.Stream<Response, InferenceError> =>
  decodedStream(model, request, undecoded)

const undecoded: ResponseStream.ResponseReader<Response, InferenceError> = {
  decode: Result.succeed,
  failure: (error) => error,
}

/** The same of decoded responses. */
export const decodedStream = <A, E>(
  model: CallableModel,
  request: Request,
  reader: ResponseStream.ResponseReader<A, E>,
): Stream.Stream<A, E> => {
  const { emits } = model
  return ResponseStream.make(
    (emit, reply) => model.submit(emits ? { ...request, emit } : request, reply),
    emits,
    reader,
  )
}
