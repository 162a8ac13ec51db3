/**
 * One request during its handler's execution: the handler's view of it (RequestContext.ts), and the response parameters
 * set so far.
 */
import { Context, Effect, Result, Tracer } from "effect"
import { Caller, type CallerService, type HandlerEnvironment } from "../call/Caller.ts"
import { Cancellation } from "./Cancellation.ts"
import { noParameters, type Parameter, type Parameters, type Request } from "../request/Request.ts"
import type { Declared, RequestParameters } from "../model/Declared.ts"
import * as PromiseCall from "../call/PromiseCall.ts"
import { type HandledRequest, RequestContext } from "./RequestContext.ts"
import type { SequencePosition } from "../request/SequencePosition.ts"
import type { Run } from "../call/PromiseCall.ts"
import * as MonotonicTime from "../request/MonotonicTime.ts"

/** Activities of one request that its trace receives, and characters of their names. */
const maxActivities = 1000
const maxActivityName = 200

export class RequestScope<P extends Declared = Declared> implements HandledRequest<P>, CallerService {
  readonly id: string
  readonly rows: number
  readonly parameters: RequestParameters<P>
  readonly expiresAt: number | undefined
  readonly requestedOutputs: ReadonlyArray<string>
  /** Its place in its sequence, and the state of the sequence; undefined for a model without sequences. */
  sequence: object | undefined = undefined
  state: unknown = undefined
  readonly #request: Request
  readonly #handling: HandlerEnvironment
  readonly #cancellation = new Cancellation()
  #responseParameters: Map<string, Parameter> | undefined
  #activities = 0

  constructor(request: Request, handling: HandlerEnvironment) {
    this.id = request.id
    this.rows = request.rows
    // Decoded by the Schemas of P, ahead of the queue.
    this.parameters = (request.declared ?? request.parameters) as RequestParameters<P>
    this.expiresAt = request.deadline
    this.requestedOutputs = request.requestedOutputs ?? []
    this.#request = request
    this.#handling = handling
  }

  get cycles() {
    return this.#handling.cycles
  }

  /** Undefined for a model without sequences, and for a warm-up. */
  get position(): SequencePosition | undefined {
    return this.#request.sequence
  }

  get connection() {
    return this.#request.connection
  }

  get trace() {
    return this.#request.trace
  }

  get deadline(): number | undefined {
    if (this.expiresAt === undefined) return undefined
    const { clock } = this.#handling
    return Math.round(clock.currentTimeMillisUnsafe() + this.expiresAt - MonotonicTime.millis(clock))
  }

  get signal(): AbortSignal {
    return this.#cancellation.signal
  }

  // Functions and not methods, so that a handler may take them apart; made on first use, as most handlers use none. As
  // properties they would be three closures of every request, and V8 puts such where only full collections look.
  get remaining(): () => number | undefined {
    return () =>
      this.expiresAt === undefined
        ? undefined
        : Math.max(0, this.expiresAt - MonotonicTime.millis(this.#handling.clock))
  }

  get setParameterUnsafe(): HandledRequest<P>["setParameterUnsafe"] {
    return (name, value) => this.#setDeclared(name, value)
  }

  get setParameter(): HandledRequest<P>["setParameter"] {
    return (name, value) => Effect.sync(() => this.#setDeclared(name, value))
  }

  get traceActivity(): HandledRequest<P>["traceActivity"] {
    return (name) => {
      const { trace } = this.#request
      if (trace?.activity === undefined || this.#activities >= maxActivities) return
      this.#activities += 1
      trace.activity(name.slice(0, maxActivityName), Number(this.#handling.clock.monotonicTimeNanosUnsafe()))
    }
  }

  get run(): Run<RequestContext> {
    return PromiseCall.runner(
      () => this.context<RequestContext>(this.#handling.context),
      () => this.signal,
    )
  }

  /** For the code that answers this request. */
  context<R>(context: Context.Context<Exclude<R, RequestContext>>): Context.Context<R> {
    // R is the given context plus the services added here, which the type of an unknown R cannot express.
    const withServices = Context.add(Context.add(context, RequestContext, this.#undeclared()), Caller, this)
    const span = this.#request.trace?.span
    return (
      span === undefined ? withServices : Context.add(withServices, Tracer.ParentSpan, span)
    ) as Context.Context<R>
  }

  /** The same request with untyped parameters as received, and untyped response parameters. */
  #undeclared(): HandledRequest {
    const { declared, parameters } = this.#request
    if (declared === undefined && this.#handling.responseParameters === undefined) {
      return this as RequestScope<Declared> as RequestScope<undefined>
    }
    const { id, rows, deadline, requestedOutputs, remaining, traceActivity, run } = this
    const setParameterUnsafe = (name: string, value: Parameter) => this.#setParameter(name, value)
    const setParameter = (name: string, value: Parameter) => Effect.sync(() => setParameterUnsafe(name, value))
    const signal = () => this.signal
    return {
      id,
      rows,
      parameters,
      deadline,
      requestedOutputs,
      remaining,
      setParameter,
      setParameterUnsafe,
      traceActivity,
      run,
      get signal() {
        return signal()
      },
    }
  }

  /** Those that have been set so far. */
  responseParameters(): Parameters {
    return this.#responseParameters === undefined ? noParameters : Object.fromEntries(this.#responseParameters)
  }

  /** Those that have been set since the last call. */
  takeResponseParameters(): Parameters {
    const parameters = this.responseParameters()
    this.#responseParameters = undefined
    return parameters
  }

  cancel(): void {
    this.#cancellation.cancel()
  }

  #setDeclared(name: string, value: unknown): void {
    // Where none are declared, it is one by its type; or something else, which is refused.
    if (this.#handling.responseParameters === undefined) return this.#setParameter(name, value as Parameter)
    const encoded = this.#handling.responseParameters.encode({ [name]: value })
    if (Result.isFailure(encoded)) throw new TypeError(`response parameter '${name}': ${encoded.failure.message}`)
    for (const [name, parameter] of Object.entries(encoded.success)) this.#setParameter(name, parameter)
  }

  #setParameter(name: string, value: Parameter): void {
    if (!["boolean", "bigint", "number", "string"].includes(typeof value)) {
      throw new TypeError(
        `response parameter '${name}' must be a boolean, bigint, number or string, got ${typeof value}`,
      )
    }
    if (typeof value === "bigint" && (value < -(2n ** 63n) || value >= 2n ** 64n)) {
      throw new RangeError(`response parameter '${name}' must be an integer of at most 64 bits, got ${value}`)
    }
    this.#responseParameters ??= new Map()
    this.#responseParameters.set(name, value)
  }
}
