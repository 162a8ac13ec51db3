/** One request to a server. It ends once: with a response, an error, at its deadline, or when the caller cancels it. */
import { constVoid } from "effect/Function"
import { type Effect, type Fiber, Result } from "effect"
import type { Definition } from "@nereid/core/internal/model/Definition"
import { DeadlineExceeded, type InferenceError } from "@nereid/core/Errors"
import type { Fields } from "@nereid/core/internal/model/Field"
import {
  type Cancel,
  errorPrefix,
  noParameters,
  type Reply,
  type Request,
  type Response,
} from "@nereid/core/internal/request/Request"
import type { FailureReason, ModelStatistics } from "@nereid/core/internal/metrics/ModelStatistics"
import type { WireRequest, WireResponse } from "@nereid/core/internal/wire/WireRequest"
import type { Channel } from "../channel/Channel.ts"
import { receive } from "./Emission.ts"
import * as OutputCheck from "./OutputCheck.ts"

/** Options shared by all calls of a model. */
export interface RemoteCallOptions {
  readonly definition: Definition<Fields, Fields>
  readonly channel: Channel
  /** The version that requests name; empty for the server's default. */
  readonly version: string
  /** Adds the defaults for what a request leaves out. */
  readonly complete: (request: Request) => Request
  readonly statistics: ModelStatistics
  /** The monotonic time in nanoseconds. */
  readonly nanos: () => number
  readonly currentTimeMillis: () => number
  readonly monotonicMillis: () => number
  readonly fork: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  /** The call has ended; its reply comes next, unless its caller has cancelled it. */
  readonly onEnd: (call: RemoteCall) => void
}

/** Longer timers fire at once; no call waits for 24 days. */
const maxTimer = 2 ** 31 - 1

export class RemoteCall {
  readonly #options: RemoteCallOptions
  readonly #request: Request
  readonly #reply: Reply
  readonly #startedAt: number
  #isOpen = true
  #timer: NodeJS.Timeout | undefined
  #cancel: Cancel = constVoid

  constructor(options: RemoteCallOptions, request: Request, reply: Reply) {
    this.#options = options
    this.#request = request
    this.#reply = reply
    this.#startedAt = options.nanos()
  }

  /** Sends the request. `remaining` is the time to its deadline in milliseconds; undefined without a deadline. */
  send(remaining: number | undefined): void {
    const { definition, channel, version, complete, nanos, fork } = this.#options
    const request = this.#request
    if (remaining !== undefined && remaining <= maxTimer) {
      this.#timer = setTimeout(() => this.fail(expired(request)), Math.ceil(remaining))
    }
    const wire = wireRequest(definition, version, complete(request))
    const { emit } = request
    if (emit === undefined) {
      this.#cancel = channel.infer(wire, remaining, (outcome) => {
        const repliedAt = nanos()
        this.#settle(repliedAt, Result.flatMap(this.#declared(outcome), this.#check(this.#request.rows)))
      })
      return
    }
    this.#cancel = receive(channel, wire, remaining, definition, {
      emit,
      fork,
      // A response of a stream has any number of rows.
      check: this.#check(-1),
      end: (outcome) =>
        this.#settle(
          nanos(),
          Result.map(this.#declared(outcome), () => last),
        ),
    })
  }

  /** Ends the call with an error, and cancels it on the server. */
  fail(error: InferenceError): void {
    if (!this.#end(reasonOf(error))) return
    this.#cancel()
    this.#reply(Result.fail(error))
  }

  /** Ends the call without a reply. */
  cancel(): void {
    if (this.#end("CANCELED")) this.#cancel()
  }

  #settle(repliedAt: number, outcome: Result.Result<Response, InferenceError>): void {
    if (!this.#end(Result.isSuccess(outcome) ? undefined : reasonOf(outcome.failure))) return
    if (Result.isSuccess(outcome)) this.#succeeded(repliedAt)
    this.#reply(outcome)
  }

  /** Returns false if the call has ended before. The reason is that of a failure. */
  #end(reason: FailureReason | undefined): boolean {
    if (!this.#isOpen) return false
    const { statistics, nanos, onEnd } = this.#options
    this.#isOpen = false
    clearTimeout(this.#timer)
    onEnd(this)
    if (reason !== undefined) statistics.failed(reason, nanos() - this.#startedAt, this.#request.id)
    return true
  }

  #succeeded(repliedAt: number): void {
    const { statistics, nanos, currentTimeMillis } = this.#options
    const endedAt = nanos()
    const compute = { input: 0, infer: repliedAt - this.#startedAt, output: endedAt - repliedAt }
    statistics.executed(this.#request.rows, compute, currentTimeMillis())
    statistics.succeeded(endedAt - this.#startedAt, 0, compute, this.#request.id)
  }

  /** Replaces the wire form of a declared error by that error. */
  #declared<A>(outcome: Result.Result<A, InferenceError>): Result.Result<A, InferenceError> {
    const { errors } = this.#options.definition
    return Result.mapError(outcome, (error) => errors?.withDeclaredStatus(error) ?? error)
  }

  #check(rows: number): (response: WireResponse) => Result.Result<Response, InferenceError> {
    const { name, signature, maxBatchSize } = this.#options.definition
    const expected = { name, signature, rows: maxBatchSize > 0 ? rows : undefined }
    return (response) => OutputCheck.check(expected, response)
  }
}

/** The outcome of a call whose responses have all been emitted. */
const last: Response = { outputs: [], parameters: noParameters }

const wireRequest = (definition: Definition<Fields, Fields>, version: string, request: Request): WireRequest => ({
  modelName: definition.name,
  modelVersion: version,
  id: request.id,
  parameters: request.parameters,
  inputs: definition.signature.inputs.flatMap(({ name }, index) => {
    const tensor = request.inputs[index]
    return tensor === undefined ? [] : [{ name, datatype: tensor.datatype, shape: tensor.shape, bytes: tensor.bytes }]
  }),
  outputs: [],
  ...(request.trace?.span !== undefined && { parent: request.trace.span }),
})

/** Has the words of the local scheduler. */
export const expired = (request: Request) =>
  new DeadlineExceeded({ message: `${errorPrefix(request)}Deadline Exceeded` })

const reasonOf = (error: InferenceError): FailureReason => {
  switch (error._tag) {
    case "ExecutionFailed":
    case "Unrecoverable":
    case "DeclaredFailure":
      return "BACKEND"
    case "QueueFull":
    case "QueueTimeout":
    case "DeadlineExceeded":
      return "REJECTED"
    case "Cancelled":
      return "CANCELED"
    default:
      return "OTHER"
  }
}
