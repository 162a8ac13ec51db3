/**
 * Many requests on one stream and their results, for all transports of ModelStreamInfer (StreamCall.ts, and on Connect
 * GrpcInferStream.ts). A failure is a result like any other and does not end the stream, unless `endingFailure` says
 * so.
 *
 *   submit ─► gateway.stream ─┬─ decoupled: each response as it comes ──────────────┬─► ready ─► take
 *    │                        └─ otherwise: in the order of the requests ───────────┘
 *    └ unless `isFull`: requests in flight, results that wait for earlier ones, and results to take are bounded
 *
 * No method waits: `onChange` notifies the transport when there may be something to do.
 */
import { constVoid } from "effect/Function"
import { Effect, Result } from "effect"
import type { InferenceError } from "@nereid/core/Errors"
import type { Cancel } from "@nereid/core/internal/request/Request"
import * as KnownParameters from "@nereid/core/internal/wire/KnownParameters"
import type { WireRequest, WireResponse } from "@nereid/core/internal/wire/WireRequest"
import type { InferenceReceiver } from "../dispatch/InferenceDispatch.ts"
import type { Gateway } from "../gateway/Gateway.ts"
import { shuttingDown } from "./CallStatus.ts"
import * as RequestSize from "../dispatch/RequestSize.ts"
import * as ResponseSize from "../dispatch/ResponseSize.ts"
import type { HeldMemory } from "../limit/MemoryBudget.ts"
import * as MonotonicTime from "@nereid/core/internal/request/MonotonicTime"

export interface InferStreamOptions {
  /** Deadline of the stream and of every request on it, as MonotonicTime; undefined for none. */
  readonly deadline: number | undefined
  /** Whether the first failure ends the stream with its status. Otherwise failures are results like any other. */
  readonly endsAtError: boolean
}

export interface StreamResult {
  /** The id of its request. */
  readonly id: string
  readonly outcome: Result.Result<WireResponse, InferenceError>
  /** Whether its request has no further results. */
  readonly isFinal: boolean
}

/** The header of a stream that is to end at its first failure: "true". */
export const errorMode = "triton_grpc_error"

/** Most requests in flight, and most results that wait; beyond either, the stream is full. */
const maxPending = 256

/** Most bytes that these hold together. A small compressed message may be a large request. */
const maxBytes = 64 * 2 ** 20

/** Maximum results waiting to be taken, before a decoupled model must wait. */
const maxReady = 16

/** Holds the result of a request until all results before it are ready. */
interface ResultSlot {
  result: StreamResult | undefined
}

/** A request in flight. */
interface InFlightRequest {
  cancel: Cancel
  /** Index among the requests in flight; -1 after its end. */
  place: number
  /** Number of requests before it on the stream. */
  readonly position: number
}

export class InferStream {
  readonly #gateway: Gateway
  readonly #options: InferStreamOptions
  readonly #onChange: () => void
  readonly #memory: HeldMemory
  /** Requests in flight, in no order. */
  #inFlight: Array<InFlightRequest> = []
  #submitted = 0
  #slots: Array<ResultSlot> = []
  #ready: Array<StreamResult> = []
  /** Bytes of requests in flight and of results that wait. */
  #bytes = 0
  /** Bytes of results that wait. */
  #waiting = 0
  /** Whether no further requests will come. */
  #ended = false
  #cancelled = false
  #waitingEmits: Array<() => void> = []
  #resuming = false

  /**
   * `onChange` is called when there may be a result to take or room for a request, or the stream may be over. `memory`:
   * what the connection of the stream holds.
   */
  constructor(gateway: Gateway, options: InferStreamOptions, onChange: () => void, memory: HeldMemory) {
    this.#gateway = gateway
    this.#options = options
    this.#onChange = onChange
    this.#memory = memory
  }

  /** Submits a request to its model, or queues the error of a request that could not be read. */
  submit(id: string, request: Result.Result<WireRequest, InferenceError>): void {
    const wire = this.#ended ? Result.fail(shuttingDown) : request
    if (Result.isFailure(wire)) return this.#inOrder()({ id, outcome: Result.fail(wire.failure), isFinal: true })
    const { modelName, modelVersion, parameters } = wire.success
    const emptyFinalResponse = parameters[KnownParameters.emptyFinalResponse] === true
    const model = this.#gateway.model(modelName, modelVersion)
    const decoupled = Result.isSuccess(model) && model.success.calls.decoupled
    const deliver = decoupled ? (result: StreamResult) => this.#push(result) : this.#inOrder()

    let hasFinal = false
    const bytes = RequestSize.of(wire.success)
    const flight: InFlightRequest = { cancel: constVoid, place: this.#inFlight.length, position: this.#submitted }
    this.#submitted += 1
    this.#inFlight.push(flight)
    this.#bytes += bytes
    const receiver: InferenceReceiver = {
      emit: (response, isLast = false) => {
        hasFinal = isLast
        return this.#emit({ id, outcome: Result.succeed(response), isFinal: isLast })
      },
      emitError: (error) => this.#emit({ id, outcome: Result.fail(error), isFinal: false }),
      end: (outcome) => {
        if (!this.#removeInFlight(flight)) return
        this.#bytes -= bytes
        const silent = decoupled && Result.isSuccess(outcome) && (hasFinal || !emptyFinalResponse)
        if (silent) this.#onChange()
        else deliver({ id, outcome, isFinal: true })
      },
    }
    flight.cancel = this.#gateway.stream(wire.success, this.#options.deadline, receiver, this.#memory)
  }

  /** Whether the transport must not read another request now. */
  get isFull(): boolean {
    const count = Math.max(this.#inFlight.length, this.#slots.length, this.#ready.length)
    return count >= maxPending || this.#bytes >= maxBytes
  }

  /** Whether there are no further results. */
  get isOver(): boolean {
    return this.#ended && this.#inFlight.length === 0 && this.#ready.length === 0
  }

  /** Number of results to take now. Taking them may bring further ones. */
  get ready(): number {
    return this.#ready.length
  }

  get isCancelled(): boolean {
    return this.#cancelled
  }

  /** Takes the next result; undefined if there is none now. */
  take(): StreamResult | undefined {
    const result = this.#ready.shift()
    if (result === undefined) return undefined
    this.#wait(-sizeOfResult(result))
    if (this.#ready.length < maxReady) this.#resumeSoon()
    return result
  }

  /** The failure in a result if it ends the stream; undefined if the result goes to the caller as a message. */
  endingFailure({ outcome }: StreamResult): InferenceError | undefined {
    if (Result.isSuccess(outcome)) return undefined
    const { deadline, endsAtError } = this.#options
    const { failure } = outcome
    // The queue may notice the deadline of the stream before the stream's own timer does.
    const isLate = failure._tag === "DeadlineExceeded" && deadline !== undefined && deadline <= MonotonicTime.millis()
    return endsAtError || isLate ? failure : undefined
  }

  /** Takes no further requests. Requests in flight are answered. */
  end(): void {
    this.#ended = true
    this.#onChange()
  }

  /**
   * Cancels requests in flight, the last one first, and drops results. In another order, a request of a sequence could
   * become the next of its sequence, and be executed or leave alone, before it is cancelled.
   */
  cancel(): void {
    this.#ended = true
    this.#cancelled = true
    const flights = this.#inFlight.toSorted((one, other) => other.position - one.position)
    this.#inFlight = []
    this.#slots = []
    this.#ready = []
    this.#wait(-this.#waiting)
    for (const flight of flights) {
      flight.place = -1
      flight.cancel()
    }
    this.#resumeEmits()
    this.#onChange()
  }

  /** Removes a request from those in flight. Returns false if it was removed before. */
  #removeInFlight(flight: InFlightRequest): boolean {
    const { place } = flight
    if (place < 0) return false
    flight.place = -1
    const last = this.#inFlight.pop()
    if (last !== undefined && last !== flight) {
      this.#inFlight[place] = last
      last.place = place
    }
    return true
  }

  /** Counts bytes of results that begin to wait, or cease to. */
  #wait(bytes: number): void {
    this.#bytes += bytes
    this.#waiting += bytes
    if (bytes > 0) this.#memory.add(bytes)
    else this.#memory.give(-bytes)
  }

  #emit(result: StreamResult): Effect.Effect<void> {
    return Effect.suspend(() => {
      // The model has not yet noticed that its request was cancelled.
      if (this.#cancelled) return Effect.void
      this.#push(result)
      if (this.#ready.length < maxReady) return Effect.void
      return Effect.callback((resume) => void this.#waitingEmits.push(() => resume(Effect.void)))
    })
  }

  /** Resumes in another turn of the event loop, which a model that never waits would otherwise occupy. */
  #resumeSoon(): void {
    if (this.#resuming || this.#waitingEmits.length === 0) return
    this.#resuming = true
    setImmediate(() => {
      this.#resuming = false
      this.#resumeEmits()
    })
  }

  #resumeEmits(): void {
    for (const resume of this.#waitingEmits.splice(0)) resume()
  }

  /** Takes the next place in order. Its result is ready once all results before it are. */
  #inOrder(): (result: StreamResult) => void {
    const slot: ResultSlot = { result: undefined }
    this.#slots.push(slot)
    return (result) => {
      if (this.#cancelled) return
      slot.result = result
      this.#wait(sizeOfResult(result))
      for (let first = this.#slots[0]; first?.result !== undefined; first = this.#slots[0]) {
        this.#slots.shift()
        this.#ready.push(first.result)
      }
      this.#onChange()
    }
  }

  #push(result: StreamResult): void {
    this.#wait(sizeOfResult(result))
    this.#ready.push(result)
    this.#onChange()
  }
}

const sizeOfResult = ({ id, outcome }: StreamResult): number => {
  if (Result.isFailure(outcome)) return id.length + outcome.failure.message.length
  return ResponseSize.of(outcome.success)
}
