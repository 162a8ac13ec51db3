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
import { type InferenceError, QueueFull, Unsupported } from "@nereid/core/Errors"
import { type Cancel, type Emit, errorPrefix, type Response } from "@nereid/core/internal/request/Request"
import { notReady } from "@nereid/core/internal/error/Refusal"
import type { RegisteredModels } from "@nereid/core/Registry"
import { validate, wireResponse } from "@nereid/core/internal/wire/Validation"
import type { WireRequest, WireResponse } from "@nereid/core/internal/wire/WireRequest"
import * as SharedMemory from "../memory/SharedMemory.ts"
import * as RequestSize from "./RequestSize.ts"

export type InferenceReply = (outcome: Result.Result<WireResponse, InferenceError>) => void

/** Takes the responses of one request, of which a decoupled model gives any number. */
export interface InferenceReceiver {
  /** Takes one response of a decoupled model. Completes once the caller takes more. */
  readonly emit: (response: WireResponse) => Effect.Effect<void>
  /**
   * Called once, at the end: with the only response of a model that is not decoupled, with a response without outputs
   * of a decoupled model, or with the failure.
   */
  readonly end: InferenceReply
}

export interface InferenceDispatch {
  /**
   * Checks a request and hands it to its model, which must not be decoupled. The reply is called once, possibly before
   * this returns, and never after the returned cancel. `deadline` is in milliseconds since the epoch, undefined for
   * none.
   */
  readonly infer: (wire: WireRequest, deadline: number | undefined, reply: InferenceReply) => Cancel
  /** The same for a caller that takes any number of responses, so for decoupled models too. */
  readonly stream: (wire: WireRequest, deadline: number | undefined, receiver: InferenceReceiver) => Cancel
}

export interface InferenceDispatchOptions {
  readonly sharedMemory: SharedMemory.SharedMemory
  /** Largest total size of unanswered requests, in bytes. */
  readonly maxInFlightSize: number
}

export const make = (
  models: Pick<RegisteredModels, "get">,
  { sharedMemory, maxInFlightSize }: InferenceDispatchOptions,
): InferenceDispatch => {
  /** Bytes of all unanswered requests. */
  let inFlight = 0
  /** `emit` is undefined for a caller that takes one response. */
  const dispatch = (
    wire: WireRequest,
    deadline: number | undefined,
    end: InferenceReply,
    emit: InferenceReceiver["emit"] | undefined,
  ): Cancel => {
    const found = models.get(wire.modelName, wire.modelVersion)
    if (Result.isFailure(found)) return refuse(end, found.failure)
    const model = found.success
    if (model.calls.decoupled && emit === undefined) return refuse(end, new Unsupported({ message: unaryOnly }))
    if (!model.life.isReady()) {
      model.description.statistics.failed("REJECTED", 0)
      return refuse(end, notReady(model.description))
    }
    const size = RequestSize.of(wire)
    if (inFlight + size > maxInFlightSize) {
      model.description.statistics.failed("REJECTED", 0)
      return refuse(end, tooMuchInFlight(wire, inFlight, maxInFlightSize))
    }
    const borrowed = SharedMemory.isUsedBy(wire) ? sharedMemory.borrow(wire) : noLoan
    if (Result.isFailure(borrowed)) {
      model.description.statistics.failed("OTHER", 0)
      return refuse(end, borrowed.failure)
    }
    const loan = borrowed.success
    const validated = validate(model.description, loan?.request ?? wire, deadline)
    if (Result.isFailure(validated)) {
      loan?.release()
      model.description.statistics.failed("OTHER", 0)
      return refuse(end, validated.failure)
    }
    const { request } = validated.success
    const written = (response: Response) => {
      const wireResult = wireResponse(model.description, validated.success, response)
      return loan === undefined ? wireResult : Result.flatMap(wireResult, loan.write)
    }
    const submitted =
      emit === undefined || !model.calls.decoupled ? request : { ...request, emit: writingEmit(written, emit) }
    let isOver = false
    inFlight += size
    const release = () => {
      if (isOver) return
      isOver = true
      inFlight -= size
      loan?.release()
    }
    const cancel = model.calls.submit(submitted, (outcome) => {
      const replyOutcome = Result.isFailure(outcome) ? Result.fail(outcome.failure) : written(outcome.success)
      release()
      end(replyOutcome)
    })
    return () => {
      cancel()
      release()
    }
  }
  return {
    infer: (wire, deadline, reply) => dispatch(wire, deadline, reply, undefined),
    stream: (wire, deadline, { end, emit }) => dispatch(wire, deadline, end, emit),
  }
}

const noLoan = Result.succeed(undefined)

const writingEmit =
  (
    written: (response: Response) => Result.Result<WireResponse, InferenceError>,
    emit: InferenceReceiver["emit"],
  ): Emit =>
  (response) => {
    const wire = written(response)
    return Result.isFailure(wire) ? Effect.fail(wire.failure) : emit(wire.success)
  }

const unaryOnly = "ModelInfer RPC doesn't support models with decoupled transaction policy"

const refuse = (reply: InferenceReply, error: InferenceError): Cancel => {
  reply(Result.fail(error))
  return constVoid
}

const tooMuchInFlight = (wire: WireRequest, inFlightBytes: number, limitBytes: number) => {
  const limit = `requests hold ${inFlightBytes} bytes until they are answered, at most ${limitBytes}`
  return new QueueFull({ message: `${errorPrefix(wire)}Exceeds maximum queue size: ${limit}`, retryAfter: 1000 })
}
