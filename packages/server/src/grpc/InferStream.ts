/**
 * Many requests on one stream and their results, for all transports of ModelStreamInfer (StreamCall.ts, and on Connect
 * GrpcInferStream.ts). A failure is a result like any other and does not end the stream, unless `endingFailure` says so.
 *
 *   ask ─► gateway.stream ─┬─ decoupled: each response as it comes ──────────────────┬─► ready ─► take
 *    │                     └─ otherwise: in its turn, the order of the requests ─────┘
 *    └ unless `isFull`: requests in flight, results that wait for their turn, and results to take are bounded
 *
 * No method waits: `onChange` tells the transport when there may be something to do.
 */
import { constVoid } from "effect/Function"
import { Effect, Result } from "effect"
import type { InferenceError } from "@nereid/core/Errors"
import type { Cancel } from "@nereid/core/internal/request/Request"
import * as KnownParameters from "@nereid/core/internal/wire/KnownParameters"
import type { WireRequest, WireResponse } from "@nereid/core/internal/wire/WireRequest"
import type { Gateway } from "../gateway/Gateway.ts"
import { shuttingDown } from "./CallStatus.ts"
import * as RequestSize from "../dispatch/RequestSize.ts"

export interface InferStreamOptions {
  /** Deadline of the stream and of every request on it, in milliseconds since the epoch; undefined for none. */
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
const mostWaiting = 256

/** Most bytes that these hold together. A small compressed message may be a large request. */
const mostBytes = 64 * 2 ** 20

/** Results that may wait to be taken before a decoupled model has to wait. */
const ahead = 16

/** The place of a request that is answered in order. */
interface Turn {
  result: StreamResult | undefined
}

/** A request in flight. */
interface Flight {
  cancel: Cancel
  /** Index among the requests in flight; -1 once it is none of them. */
  place: number
}

export class InferStream {
  readonly #gateway: Gateway
  readonly #options: InferStreamOptions
  readonly #onChange: () => void
  /** Requests in flight, in no order. */
  #inFlight: Array<Flight> = []
  #turns: Array<Turn> = []
  #ready: Array<StreamResult> = []
  /** Bytes of requests in flight and of results that wait. */
  #bytes = 0
  /** Whether no further requests will come. */
  #ended = false
  #cancelled = false
  #waitingEmits: Array<() => void> = []
  #resuming = false

  /** `onChange` is called when there may be a result to take or room for a request, or the stream may be over. */
  constructor(gateway: Gateway, options: InferStreamOptions, onChange: () => void) {
    this.#gateway = gateway
    this.#options = options
    this.#onChange = onChange
  }

  /** Hands a request to its model, or takes the error of a request that could not be read. */
  ask(id: string, request: Result.Result<WireRequest, InferenceError>): void {
    const wire = this.#ended ? Result.fail(shuttingDown) : request
    if (Result.isFailure(wire)) return this.#inTurn()({ id, outcome: Result.fail(wire.failure), isFinal: true })
    const { modelName, modelVersion, parameters } = wire.success
    const emptyFinalResponse = parameters[KnownParameters.emptyFinalResponse] === true
    const model = this.#gateway.model(modelName, modelVersion)
    const decoupled = Result.isSuccess(model) && model.success.calls.decoupled
    const answer = decoupled ? (result: StreamResult) => this.#push(result) : this.#inTurn()

    const bytes = RequestSize.of(wire.success)
    const flight: Flight = { cancel: constVoid, place: this.#inFlight.length }
    this.#inFlight.push(flight)
    this.#bytes += bytes
    flight.cancel = this.#gateway.stream(wire.success, this.#options.deadline, {
      emit: (response) => this.#emit({ id, outcome: Result.succeed(response), isFinal: false }),
      end: (outcome) => {
        if (!this.#land(flight)) return
        this.#bytes -= bytes
        const silent = decoupled && Result.isSuccess(outcome) && !emptyFinalResponse
        if (silent) this.#onChange()
        else answer({ id, outcome, isFinal: true })
      },
    })
  }

  /** Whether the transport must not read another request now. */
  get isFull(): boolean {
    const count = Math.max(this.#inFlight.length, this.#turns.length, this.#ready.length)
    return count >= mostWaiting || this.#bytes >= mostBytes
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
    this.#bytes -= sizeOfResult(result)
    if (this.#ready.length < ahead) this.#resumeSoon()
    return result
  }

  /** The failure in a result if it ends the stream; undefined if the result goes to the caller as a message. */
  endingFailure({ outcome }: StreamResult): InferenceError | undefined {
    if (Result.isSuccess(outcome)) return undefined
    const { deadline, endsAtError } = this.#options
    const { failure } = outcome
    // The queue may notice the deadline of the stream before the stream's own timer does.
    const isLate = failure._tag === "DeadlineExceeded" && deadline !== undefined && deadline <= Date.now()
    return endsAtError || isLate ? failure : undefined
  }

  /** Takes no further requests. Requests in flight are answered. */
  end(): void {
    this.#ended = true
    this.#onChange()
  }

  /** Cancels requests in flight and drops results. */
  cancel(): void {
    this.#ended = true
    this.#cancelled = true
    const flights = this.#inFlight
    this.#inFlight = []
    this.#turns = []
    this.#ready = []
    for (const flight of flights) {
      flight.place = -1
      flight.cancel()
    }
    this.#resumeEmits()
    this.#onChange()
  }

  /** Removes a request from those in flight. Returns false if it was removed before. */
  #land(flight: Flight): boolean {
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

  #emit(result: StreamResult): Effect.Effect<void> {
    return Effect.suspend(() => {
      // The model has not yet noticed that its request was cancelled.
      if (this.#cancelled) return Effect.void
      this.#push(result)
      if (this.#ready.length < ahead) return Effect.void
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
    for (const taken of this.#waitingEmits.splice(0)) taken()
  }

  /** Takes the next place in order. Its result is ready once all results before it are. */
  #inTurn(): (result: StreamResult) => void {
    const turn: Turn = { result: undefined }
    this.#turns.push(turn)
    return (result) => {
      turn.result = result
      this.#bytes += sizeOfResult(result)
      for (let first = this.#turns[0]; first?.result !== undefined; first = this.#turns[0]) {
        this.#turns.shift()
        this.#ready.push(first.result)
      }
      this.#onChange()
    }
  }

  #push(result: StreamResult): void {
    this.#bytes += sizeOfResult(result)
    this.#ready.push(result)
    this.#onChange()
  }
}

const sizeOfResult = ({ id, outcome }: StreamResult): number => {
  if (Result.isFailure(outcome)) return id.length + outcome.failure.message.length
  let size = id.length
  for (const { bytes } of outcome.success.outputs) size += bytes.length
  return size
}
