/**
 * Dispatches requests to their models, for all transports: finds the model, admits the request, borrows its shared
 * memory, validates and submits it, and writes its response. The other operations of a server are in Gateway.ts.
 *
 *   store ─► ready ─► room ─► loan ─► validation ─► calls.submit ─► response, written ─► end
 *     │        └───────┴───────┴─────────┴─ refused: end, and counted as a failure of the model
 *     └─ not found, or decoupled for a caller that takes one response: end
 */
import { constVoid } from "effect/Function"
import { Effect, Result } from "effect"
import { ExecutionFailed, type InferenceError, QueueFull, Unsupported } from "@nereid/core/Errors"
import { type Cancel, type Emit, errorPrefix, type Response } from "@nereid/core/internal/request/Request"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { notReady } from "@nereid/core/internal/error/Refusal"
import type { RegisteredModels } from "@nereid/core/Registry"
import { classifiedResponse, validate, wireResponse } from "@nereid/core/internal/wire/Validation"
import type { WireRequest, WireResponse } from "@nereid/core/internal/wire/WireRequest"
import type { HeldMemory } from "../limit/MemoryBudget.ts"
import * as SharedMemory from "../memory/SharedMemory.ts"
import * as RequestSize from "./RequestSize.ts"
import * as SlicedWork from "./SlicedWork.ts"

export type InferenceReply = (outcome: Result.Result<WireResponse, InferenceError>) => void

/** Takes the responses of one request, of which a decoupled model gives any number. */
export interface InferenceReceiver {
  /** Takes one response of a decoupled model. Completes once the caller takes more. */
  readonly emit: (response: WireResponse, isLast?: boolean) => Effect.Effect<void>
  /** Takes an error that is one of several responses. Absent for a receiver whose request ends with the first error. */
  readonly emitError?: ((error: InferenceError) => Effect.Effect<void>) | undefined
  /**
   * Called once, at the end: with the only response of a model that is not decoupled, with a response without outputs
   * of a decoupled model, or with the failure.
   */
  readonly end: InferenceReply
}

export interface InferenceDispatch {
  /**
   * Checks a request and hands it to its model, which must not be decoupled. The reply is called once, possibly before
   * this returns, and never after the returned cancel. `deadline` is a MonotonicTime, undefined for none. `memory` is
   * what the connection of the request holds; without it, the request counts for no connection.
   */
  readonly infer: (
    wire: WireRequest,
    deadline: number | undefined,
    reply: InferenceReply,
    memory?: HeldMemory,
  ) => Cancel
  /** The same for a caller that takes any number of responses, so for decoupled models too. */
  readonly stream: (
    wire: WireRequest,
    deadline: number | undefined,
    receiver: InferenceReceiver,
    memory?: HeldMemory,
  ) => Cancel
}

/** The dispatch itself, below tracing. */
export interface CountedDispatch extends InferenceDispatch {
  /** Returns the number of unanswered requests. */
  readonly inFlight: () => number
}

/** `unattributed` is the memory of requests without a connection. */
export const make = (
  models: Pick<RegisteredModels, "get">,
  sharedMemory: SharedMemory.SharedMemory,
  unattributed: HeldMemory,
): CountedDispatch => {
  let requests = 0
  /** `receiver` is undefined for a caller that takes one response. */
  const dispatch = (
    wire: WireRequest,
    deadline: number | undefined,
    end: InferenceReply,
    receiver: Pick<InferenceReceiver, "emit" | "emitError"> | undefined,
    memory: HeldMemory = unattributed,
  ): Cancel => {
    const found = models.get(wire.modelName, wire.modelVersion)
    if (Result.isFailure(found)) return refuse(end, found.failure)
    const model = found.success
    if (model.calls.decoupled && receiver === undefined) return refuse(end, new Unsupported({ message: unaryOnly }))
    if (!model.life.isReady()) {
      model.description.statistics.failed("REJECTED", 0)
      return refuse(end, notReady(model.description))
    }
    const size = RequestSize.of(wire)
    const full = memory.take(size)
    if (full !== undefined) {
      model.description.statistics.failed("REJECTED", 0)
      return refuse(end, queueFull(wire, full))
    }
    const borrowed = SharedMemory.isUsedBy(wire) ? sharedMemory.borrow(wire, model.calls.mapsShared) : noLoan
    if (Result.isFailure(borrowed)) {
      memory.give(size)
      model.description.statistics.failed("OTHER", 0)
      return refuse(end, borrowed.failure)
    }
    const loan = borrowed.success
    const connection = memory === unattributed ? undefined : memory
    const validated = validate(model.description, loan?.request ?? wire, deadline, connection)
    if (Result.isFailure(validated)) {
      loan?.release()
      memory.give(size)
      model.description.statistics.failed("OTHER", 0)
      return refuse(end, validated.failure)
    }
    const request =
      loan?.targets === undefined ? validated.success.request : { ...validated.success.request, targets: loan.targets }
    const wireOf = (response: Response) => wireResponse(model.description, validated.success, response)
    const written = (response: Response) =>
      loan === undefined ? Result.succeed(wireOf(response)) : loan.write(wireOf(response))
    const classified: ClassifiedWriter | undefined = validated.success.isClassified
      ? (response, done) =>
          SlicedWork.run(
            classifiedResponse(model.description, validated.success, response),
            (result) => done(loan === undefined ? result : Result.flatMap(result, loan.write)),
            (error) => done(Result.fail(new ExecutionFailed({ message: errorMessage(error) }))),
          )
      : undefined
    const submitted =
      receiver === undefined || !model.calls.decoupled
        ? request
        : {
            ...request,
            emit: writingEmit(loan === undefined ? wireOf : undefined, written, classified, receiver),
            takesErrors: receiver.emitError !== undefined,
            hold: (bytes: number) => (bytes > 0 ? memory.add(bytes) : memory.give(-bytes)),
          }
    let isOver = false
    requests += 1
    const release = () => {
      if (isOver) return
      isOver = true
      requests -= 1
      memory.give(size)
      loan?.release()
    }
    let cancelClasses: Cancel | undefined
    const cancel = model.calls.submit(submitted, (outcome) => {
      if (classified !== undefined && Result.isSuccess(outcome)) {
        cancelClasses = classified(outcome.success, (replyOutcome) => {
          release()
          end(replyOutcome)
        })
        return
      }
      const replyOutcome = Result.isFailure(outcome) ? Result.fail(outcome.failure) : written(outcome.success)
      release()
      end(replyOutcome)
    })
    return () => {
      cancel()
      cancelClasses?.()
      release()
    }
  }
  return {
    infer: (wire, deadline, reply, memory) => dispatch(wire, deadline, reply, undefined, memory),
    stream: (wire, deadline, receiver, memory) => dispatch(wire, deadline, receiver.end, receiver, memory),
    inFlight: () => requests,
  }
}

const noLoan = Result.succeed(undefined)

/** Writes a response with classes. Calls `done` once, in this turn or a later one, never after the returned cancel. */
type ClassifiedWriter = (response: Response, done: InferenceReply) => Cancel

/** `wireOf` converts the responses of a request without shared memory, which cannot fail; undefined for others. */
const writingEmit = (
  wireOf: ((response: Response) => WireResponse) | undefined,
  written: (response: Response) => Result.Result<WireResponse, InferenceError>,
  classified: ClassifiedWriter | undefined,
  { emit, emitError }: Pick<InferenceReceiver, "emit" | "emitError">,
): Emit => {
  const failed = (error: InferenceError) => emitError?.(error) ?? Effect.fail(error)
  if (classified !== undefined) {
    return (response, isLast) =>
      response.error !== undefined
        ? failed(response.error)
        : Effect.callback<WireResponse, InferenceError>((resume) => {
            const cancel = classified(response, (outcome) => resume(Effect.fromResult(outcome)))
            return Effect.sync(cancel)
          }).pipe(Effect.flatMap((wire) => emit(wire, isLast)))
  }
  return (response, isLast) => {
    if (response.error !== undefined) return failed(response.error)
    if (wireOf !== undefined) return emit(wireOf(response), isLast)
    const wire = written(response)
    return Result.isFailure(wire) ? Effect.fail(wire.failure) : emit(wire.success, isLast)
  }
}

const unaryOnly = "ModelInfer RPC doesn't support models with decoupled transaction policy"

const refuse = (reply: InferenceReply, error: InferenceError): Cancel => {
  reply(Result.fail(error))
  return constVoid
}

const queueFull = (wire: WireRequest, { message, retryAfter }: QueueFull) =>
  new QueueFull({
    message: `${errorPrefix(wire)}Exceeds maximum queue size: ${message}`,
    ...(retryAfter === undefined ? {} : { retryAfter }),
  })
