/**
 * The way of a request from the wire to its model, whatever the transport: found, admitted, its shared memory borrowed,
 * checked, handed over; and the way of its answer back. What else a server can do is Gateway.ts's.
 *
 *   registry ─► ready ─► room ─► loan ─► validation ─► model.submit ─► answer, written ─► end
 *      └──────────┴────────┴───────┴─────────┴─ refused: end, and counted as the model's failure
 */
import { constVoid } from "effect/Function"
import { Effect, Result } from "effect"
import { type InferenceError, QueueFull, Unsupported } from "@nereid/core/Errors"
import { type Cancel, type Emit, errorPrefix, type Response } from "@nereid/core/internal/request/Request"
import { notReady } from "@nereid/core/internal/call/NamedCalls"
import type { RegisteredModels } from "@nereid/core/Registry"
import { validate, wireResponse } from "@nereid/core/internal/wire/Validation"
import type { WireRequest, WireResponse } from "@nereid/core/internal/wire/WireRequest"
import * as SharedMemory from "../memory/SharedMemory.ts"
import * as RequestSize from "./RequestSize.ts"

export type InferenceReply = (outcome: Result.Result<WireResponse, InferenceError>) => void

/** Takes the responses of one request, of which a decoupled model gives any number. */
export interface Receiver {
  /** One response of a decoupled model. Completes once the caller takes more. */
  readonly emit: (response: WireResponse) => Effect.Effect<void>
  /**
   * Called once, at the end: with the only response of a model that is not decoupled, with one that has no outputs of a
   * decoupled model, or with the failure.
   */
  readonly end: InferenceReply
}

/**
 * Checks a request and hands it to its model. The reply is called once, perhaps before this returns; never after the
 * returned cancel. `deadline` in milliseconds since the epoch, undefined for none.
 */
export type Submit = (wire: WireRequest, deadline: number | undefined, receiver: Receiver | InferenceReply) => Cancel

export interface SubmissionOptions {
  readonly sharedMemory: SharedMemory.SharedMemory
  /** Bytes that requests hold together until they are answered. */
  readonly maxInFlightSize: number
}

export const make = (
  registry: Pick<RegisteredModels, "get">,
  { sharedMemory, maxInFlightSize }: SubmissionOptions,
): Submit => {
  /** Bytes of the requests that are not answered. */
  let inFlight = 0
  return (wire, deadline, receiver) => {
    const end = typeof receiver === "function" ? receiver : receiver.end
    const found = registry.get(wire.modelName, wire.modelVersion)
    if (Result.isFailure(found)) return answered(end, found.failure)
    const model = found.success
    if (model.calls.decoupled && typeof receiver === "function")
      return answered(end, new Unsupported({ message: unaryOnly }))
    if (!model.life.isReady()) {
      model.description.statistics.failed("REJECTED", 0)
      return answered(end, notReady(model.description))
    }
    const size = RequestSize.of(wire)
    if (inFlight + size > maxInFlightSize) {
      model.description.statistics.failed("REJECTED", 0)
      return answered(end, tooMuchInFlight(wire, inFlight, maxInFlightSize))
    }
    const borrowed = SharedMemory.isUsedBy(wire) ? sharedMemory.borrow(wire) : noLoan
    if (Result.isFailure(borrowed)) {
      model.description.statistics.failed("OTHER", 0)
      return answered(end, borrowed.failure)
    }
    const loan = borrowed.success
    const validated = validate(model.description, loan?.request ?? wire, deadline)
    if (Result.isFailure(validated)) {
      loan?.release()
      model.description.statistics.failed("OTHER", 0)
      return answered(end, validated.failure)
    }
    const { request } = validated.success
    const written = (response: Response) => {
      const answer = wireResponse(model.description, validated.success, response)
      return loan === undefined ? answer : Result.flatMap(answer, loan.write)
    }
    const asked =
      typeof receiver === "function" || !model.calls.decoupled
        ? request
        : { ...request, emit: emitter(written, receiver) }
    let isOver = false
    inFlight += size
    const release = () => {
      if (isOver) return
      isOver = true
      inFlight -= size
      loan?.release()
    }
    const cancel = model.calls.submit(asked, (outcome) => {
      const answer = Result.isFailure(outcome) ? Result.fail(outcome.failure) : written(outcome.success)
      release()
      end(answer)
    })
    return () => {
      cancel()
      release()
    }
  }
}

const noLoan = Result.succeed(undefined)

const emitter =
  (written: (response: Response) => Result.Result<WireResponse, InferenceError>, receiver: Receiver): Emit =>
  (response) => {
    const wire = written(response)
    return Result.isFailure(wire) ? Effect.fail(wire.failure) : receiver.emit(wire.success)
  }

const unaryOnly = "ModelInfer RPC doesn't support models with decoupled transaction policy"

const answered = (reply: InferenceReply, error: InferenceError): Cancel => {
  reply(Result.fail(error))
  return constVoid
}

const tooMuchInFlight = (wire: WireRequest, held: number, most: number) => {
  const limit = `requests hold ${held} bytes until they are answered, at most ${most}`
  return new QueueFull({ message: `${errorPrefix(wire)}Exceeds maximum queue size: ${limit}`, retryAfter: 1000 })
}
