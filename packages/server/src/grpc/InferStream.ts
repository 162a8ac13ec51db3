/**
 * Many requests on one stream and their results, whatever carries it (ModelStreamInfer: StreamCall.ts, and on Connect
 * GrpcInferStream.ts). A failure is a result like any other, and the stream goes on behind it.
 *
 *   ask ─► gateway.stream ─┬─ decoupled: each response as it comes ──────────────────┬─► ready ─► take
 *    │                     └─ otherwise: in its turn, the order of the requests ─────┘
 *    └ unless `isFull`: requests in flight, results that wait for their turn, and those that nobody has taken, are few
 *
 * Nothing waits here: who carries the stream is told when there may be something to do.
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
  /** Of the request that this belongs to. */
  readonly id: string
  readonly outcome: Result.Result<WireResponse, InferenceError>
  /** Whether its request has no further results. */
  readonly isFinal: boolean
}

/** The header of a stream that is to end at its first failure: "true". */
export const errorMode = "triton_grpc_error"

/** Requests in flight, and results that wait; where there are more of either, no request is to be asked. */
const mostWaiting = 256

/** Bytes that these hold together; a small compressed message may be a large request. */
const mostBytes = 64 * 2 ** 20

/** Results that wait to be taken; a decoupled model that is ahead by so many waits too. */
const ahead = 16

/** A request that is answered in its turn. */
interface Turn {
  result: StreamResult | undefined
}

/** A request that its model has. */
interface Flight {
  cancel: Cancel
  /** Among those in flight; -1 where it is no longer one of them. */
  place: number
}

export class InferStream {
  readonly #gateway: Gateway
  readonly #options: InferStreamOptions
  readonly #onChange: () => void
  /** In no order. */
  #inFlight: Array<Flight> = []
  #turns: Array<Turn> = []
  #ready: Array<StreamResult> = []
  /** Held by requests in flight and by results that wait. */
  #bytes = 0
  /** No further requests will come. */
  #ended = false
  #cancelled = false
  #waitingEmits: Array<() => void> = []
  #resuming = false

  /** `onChange` is called where there is something to take, or room to ask, or all is over; it may be neither. */
  constructor(gateway: Gateway, options: InferStreamOptions, onChange: () => void) {
    this.#gateway = gateway
    this.#options = options
    this.#onChange = onChange
  }

  /** Hands a request to its model, or takes the refusal of one that could not be read. */
  ask(id: string, request: Result.Result<WireRequest, InferenceError>): void {
    const wire = this.#ended ? Result.fail(shuttingDown) : request
    if (Result.isFailure(wire)) return this.#inTurn()({ id, outcome: Result.fail(wire.failure), isFinal: true })
    const { modelName, modelVersion, parameters } = wire.success
    const emptyFinalResponse = parameters[KnownParameters.emptyFinalResponse] === true
    const model = this.#gateway.model(modelName, modelVersion)
    const decoupled = Result.isSuccess(model) && model.success.decoupled
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

  /** Whether no request is to be asked for now. */
  get isFull(): boolean {
    const count = Math.max(this.#inFlight.length, this.#turns.length, this.#ready.length)
    return count >= mostWaiting || this.#bytes >= mostBytes
  }

  /** Whether there are no further results. */
  get isOver(): boolean {
    return this.#ended && this.#inFlight.length === 0 && this.#ready.length === 0
  }

  /** How many results there are to take now; taking them may bring further ones. */
  get ready(): number {
    return this.#ready.length
  }

  get isCancelled(): boolean {
    return this.#cancelled
  }

  /** The next result; undefined where there is none now. */
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

  /** No further requests; those in flight are answered. */
  end(): void {
    this.#ended = true
    this.#onChange()
  }

  /** Takes back what is in flight, and forgets what is ready. */
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

  /** False where it had landed already. */
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
      // A model that has not noticed yet.
      if (this.#cancelled) return Effect.void
      this.#push(result)
      if (this.#ready.length < ahead) return Effect.void
      return Effect.callback((resume) => void this.#waitingEmits.push(() => resume(Effect.void)))
    })
  }

  /** In another turn of the event loop: a model that never waits for anything would not let it have one. */
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

  /** A place behind all requests that have one; its result is ready when all before it are. */
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
