/** One request while its handler has it: what the handler is told of it (RequestContext.ts), and what it has said so far. */
import { type Clock, Effect } from "effect"
import { Cancellation } from "./Cancellation.ts"
import { noParameters, type Parameter, type Parameters, type Request } from "./Inference.ts"
import type { HandledRequest } from "./RequestContext.ts"

export class RequestScope implements HandledRequest {
  readonly id: string
  readonly rows: number
  readonly parameters: Parameters
  readonly deadline: number | undefined
  readonly requestedOutputs: ReadonlyArray<string>
  readonly #clock: Clock.Clock
  readonly #cancellation: Cancellation
  #responseParameters: Map<string, Parameter> | undefined

  constructor(request: Request, clock: Clock.Clock, cancellation: Cancellation = new Cancellation()) {
    this.id = request.id
    this.rows = request.rows
    this.parameters = request.parameters
    this.deadline = request.deadline
    this.requestedOutputs = request.requestedOutputs ?? []
    this.#clock = clock
    this.#cancellation = cancellation
  }

  get signal(): AbortSignal {
    return this.#cancellation.signal
  }

  // Functions and not methods, so that a handler may take them apart; made for who asks, which most handlers do not. As
  // properties they would be three closures of every request, and V8 puts such where only full collections look.
  get remaining(): () => number | undefined {
    return () =>
      this.deadline === undefined ? undefined : Math.max(0, this.deadline - this.#clock.currentTimeMillisUnsafe())
  }

  get setParameterUnsafe(): (name: string, value: Parameter) => void {
    return (name, value) => this.#setParameter(name, value)
  }

  get setParameter(): (name: string, value: Parameter) => Effect.Effect<void> {
    return (name, value) => Effect.sync(() => this.#setParameter(name, value))
  }

  /** Those that have been set so far. */
  responseParameters(): Parameters {
    return this.#responseParameters === undefined ? noParameters : Object.fromEntries(this.#responseParameters)
  }

  cancel(): void {
    this.#cancellation.cancel()
  }

  #setParameter(name: string, value: Parameter): void {
    if (typeof value === "bigint" && (value < -(2n ** 63n) || value >= 2n ** 64n)) {
      throw new RangeError(`response parameter '${name}' must be an integer of at most 64 bits, got ${value}`)
    }
    this.#responseParameters ??= new Map()
    this.#responseParameters.set(name, value)
  }
}
