/**
 * Many requests on one stream and their results, whatever carries it (ModelStreamInfer: GrpcInferStream.ts). A failure is
 * a result like any other, and the stream goes on behind it.
 *
 *   ask ─► gateway.stream ─┬─ decoupled: each response as it comes ──────────────────┬─► ready ─► next
 *    │                     └─ otherwise: in its turn, the order of the requests ─────┘
 *    └ as long as `room`: requests in flight, results that wait for their turn, and those that nobody has taken, are few
 */
import { Effect, Result } from "effect"
import type { InferenceError } from "@nereid/core/Errors"
import type { Cancel } from "@nereid/core/Inference"
import * as KnownParameters from "@nereid/core/KnownParameters"
import type { WireRequest, WireResponse } from "@nereid/core/WireRequest"
import type { Gateway } from "../Gateway.ts"
import { shuttingDown } from "./GrpcStatus.ts"
import * as RequestSize from "../RequestSize.ts"

export interface StreamResult {
  /** Of the request that this belongs to. */
  readonly id: string
  readonly outcome: Result.Result<WireResponse, InferenceError>
  /** Whether its request has no further results. */
  readonly isFinal: boolean
}

/** Requests in flight, and results that wait; where there are more of either, no request is read. */
const mostWaiting = 256

/** Bytes that these hold together; a small compressed message may be a large request. */
const mostBytes = 64 * 2 ** 20

/** Results that wait for a reader; a decoupled model that is ahead of it by so many waits too. */
const ahead = 16

/** A request that is answered in its turn. */
interface Turn {
  result: StreamResult | undefined
}

export class InferStream {
  readonly #gateway: Gateway
  /** Of every request on the stream, in milliseconds since the epoch. */
  readonly #deadline: number | undefined
  readonly #inFlight = new Set<{ cancel: Cancel }>()
  #turns: Array<Turn> = []
  #ready: Array<StreamResult> = []
  /** Held by requests in flight and by results that wait. */
  #bytes = 0
  /** No further requests will come. */
  #ended = false
  #cancelled = false
  #wakeReader = nothing
  #wakeWriter = nothing
  #waitingEmits: Array<() => void> = []

  constructor(gateway: Gateway, deadline: number | undefined) {
    this.#gateway = gateway
    this.#deadline = deadline
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

    const flight = { cancel: nothing }
    const bytes = RequestSize.of(wire.success)
    this.#bytes += bytes
    this.#inFlight.add(flight)
    const cancel = this.#gateway.stream(wire.success, this.#deadline, {
      emit: (response) => this.#emit({ id, outcome: Result.succeed(response), isFinal: false }),
      end: (outcome) => {
        if (!this.#inFlight.delete(flight)) return
        this.#bytes -= bytes
        const silent = decoupled && Result.isSuccess(outcome) && !emptyFinalResponse
        if (!silent) answer({ id, outcome, isFinal: true })
        this.#wake()
      },
    })
    flight.cancel = cancel
  }

  /** Whether another request may be asked, once there is room for it; false where nobody wants its result any more. */
  async room(): Promise<boolean> {
    while (!this.#cancelled && this.#isFull()) {
      await new Promise<void>((resolve) => (this.#wakeReader = resolve))
    }
    return !this.#cancelled
  }

  /** The next result; undefined once there are no more. */
  async next(): Promise<StreamResult | undefined> {
    for (;;) {
      const result = this.#ready.shift()
      if (result !== undefined) {
        this.#bytes -= sizeOfResult(result)
        if (this.#ready.length < ahead) this.#resumeEmits()
        this.#wakeReader()
        return result
      }
      if (this.#ended && this.#inFlight.size === 0) return undefined
      await new Promise<void>((resolve) => (this.#wakeWriter = resolve))
    }
  }

  /** No further requests; those in flight are answered. */
  end(): void {
    this.#ended = true
    this.#wake()
  }

  /** Takes back what is in flight, and forgets what is ready. */
  cancel(): void {
    this.#ended = true
    this.#cancelled = true
    const flights = [...this.#inFlight]
    this.#inFlight.clear()
    this.#turns = []
    this.#ready = []
    for (const { cancel } of flights) cancel()
    this.#resumeEmits()
    this.#wake()
  }

  #isFull(): boolean {
    const count = Math.max(this.#inFlight.size, this.#turns.length, this.#ready.length)
    return count >= mostWaiting || this.#bytes >= mostBytes
  }

  #emit(result: StreamResult): Effect.Effect<void> {
    return Effect.callback((resume) => {
      // A model that has not noticed yet.
      if (this.#cancelled) return resume(Effect.void)
      this.#push(result)
      const taken = () => resume(Effect.void)
      if (this.#ready.length < ahead) taken()
      else this.#waitingEmits.push(taken)
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
      this.#wakeWriter()
    }
  }

  #push(result: StreamResult): void {
    this.#bytes += sizeOfResult(result)
    this.#ready.push(result)
    this.#wakeWriter()
  }

  #wake(): void {
    this.#wakeReader()
    this.#wakeWriter()
  }
}

const nothing = () => {}

const sizeOfResult = ({ id, outcome }: StreamResult): number => {
  if (Result.isFailure(outcome)) return id.length + outcome.failure.message.length
  return outcome.success.outputs.reduce((size, { bytes }) => size + bytes.length, id.length)
}
