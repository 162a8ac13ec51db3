/**
 * The states of sequences around a handler in code: gives them to the handler, and keeps those that it returns for
 * requests that succeed. State tensors are inputs and outputs of the handler's code (sequence/SequenceInstance.ts);
 * values of a Schema stay in memory as they are.
 */
import { Exit, Result, Schema } from "effect"
import type { Declared, StateOf } from "../model/Declared.ts"
import type { Definition } from "../model/Definition.ts"
import { ExecutionFailed } from "../error/InferenceError.ts"
import type { Fields } from "../model/Field.ts"
import type { DeclaredState } from "../model/SequenceOptions.ts"
import type { Instance } from "../instance/Instance.ts"
import type { Request } from "../request/Request.ts"
import { noState, type SequencePosition } from "../request/SequencePosition.ts"
import * as SequenceInstance from "../sequence/SequenceInstance.ts"
import type { HandledPosition, HandledSequence } from "./HandledSequence.ts"
import type { HandledRequest } from "./RequestContext.ts"
import { RequestScope } from "./RequestScope.ts"

export class SequenceStates {
  /** The model as the handler's code sees it: state tensors are among its inputs and outputs. */
  readonly inner: Definition<Fields, Fields>
  readonly #name: string
  readonly #state: DeclaredState
  readonly #names: ReadonlySet<string>
  readonly #isValue: (value: unknown) => boolean

  constructor(definition: Definition<Fields, Fields>) {
    const { name, state = { _tag: "none" }, sequencing, inputs, outputs, signature } = definition
    const fields = state._tag === "tensors" ? state.fields : {}
    this.#name = name
    this.#state = state
    this.#names = new Set(Object.keys(fields))
    this.#isValue = state._tag === "value" ? Schema.is(state.schema) : () => true
    this.inner = {
      ...definition,
      inputs: { ...inputs, ...fields },
      outputs: { ...outputs, ...fields },
      signature: sequencing === undefined ? signature : SequenceInstance.innerSignature(signature, sequencing),
    }
  }

  /** Whether states are tensors, which the decoded inputs have. */
  get isTensors(): boolean {
    return this.#state._tag === "tensors"
  }

  /** Splits decoded inputs, of a sample or a batch, into those of the caller and the state tensors. */
  split(decoded: Readonly<Record<string, unknown>>): { readonly inputs: object; readonly state: object } {
    if (this.#names.size === 0) return { inputs: decoded, state: {} }
    const inputs: Record<string, unknown> = {}
    const state: Record<string, unknown> = {}
    for (const name of Object.keys(decoded)) (this.#names.has(name) ? state : inputs)[name] = decoded[name]
    return { inputs, state }
  }

  /** The request of a sample as its handler sees it. `tensors`: its state tensors, from `split`. */
  handled<P extends Declared>(
    request: HandledRequest<P>,
    position: SequencePosition,
    tensors: object,
  ): HandledSequence<P> {
    return handledSequence(request, position, this.isTensors ? tensors : this.#valueOf(position))
  }

  /** The states of a batch as its handler sees them. `tensors`: its state tensors, from `split`. */
  batched(positions: ReadonlyArray<SequencePosition>, tensors: object): object {
    return this.isTensors ? tensors : positions.map((position) => this.#valueOf(position))
  }

  /**
   * The outputs of the handler's code for these results, of a sample or a batch, with the state tensors.
   * @throws ExecutionFailed if there are no outputs, or if a state is missing
   */
  joined(returned: unknown): object {
    const outputs = part(returned, "outputs")
    const state = part(returned, "state")
    if (typeof outputs !== "object" || outputs === null) throw this.#failed("returned no 'outputs'")
    if (this.#state._tag !== "tensors") return outputs
    if (typeof state !== "object" || state === null) throw this.#failed("returned no 'state'")
    return { ...outputs, ...state }
  }

  /**
   * Keeps the value for the next request, once this one has succeeded.
   * @throws ExecutionFailed if the value does not match its Schema
   */
  keepValue(position: SequencePosition, value: unknown): void {
    if (this.#state._tag !== "value") return
    if (!this.#isValue(value)) throw this.#failed("returned a state that does not match its Schema")
    position.returned = new Kept(value)
  }

  /**
   * The values of a batch of this many requests; empty for state tensors.
   * @throws ExecutionFailed if their number differs
   */
  valuesIn(returned: unknown, count: number): ReadonlyArray<unknown> {
    if (this.#state._tag !== "value") return []
    const values = part(returned, "state")
    if (Array.isArray(values) && values.length === count) return values
    const found = Array.isArray(values) ? `${values.length} states` : "no list of states"
    throw this.#failed(`returned ${found} for a batch of ${count} requests`)
  }

  /** An instance that keeps the values of requests that have succeeded. */
  committing(execute: Instance["execute"]): Instance["execute"] {
    if (this.#state._tag !== "value") return execute
    return (batch, settle) =>
      execute(batch, (exit) => {
        if (Exit.isSuccess(exit)) commit(batch.requests, exit.value.outcomes)
        settle(exit)
      })
  }

  /** The value that the state of a sequence has. */
  #valueOf({ state }: SequencePosition): unknown {
    if (this.#state._tag !== "value") return undefined
    return state.value instanceof Kept ? state.value.value : this.#state.initial()
  }

  #failed(problem: string): ExecutionFailed {
    return new ExecutionFailed({ message: `the handler of model '${this.#name}' ${problem}` })
  }
}

/** Keeps the values that the successful requests have returned. */
const commit = (requests: ReadonlyArray<Request>, outcomes: ReadonlyArray<Result.Result<unknown, unknown>>): void => {
  for (let index = 0; index < requests.length; index++) {
    const position = requests[index]?.sequence
    const outcome = outcomes[index]
    if (position?.returned === undefined || outcome === undefined || Result.isFailure(outcome)) continue
    position.state.value = position.returned
  }
}

/** A state that a request has left, which may be undefined. */
class Kept {
  readonly value: unknown

  constructor(value: unknown) {
    this.value = value
  }
}

/** One property of what a handler has returned. */
export const part = (returned: unknown, key: "outputs" | "state"): unknown =>
  typeof returned === "object" && returned !== null ? Reflect.get(returned, key) : undefined

/** Whether the queue has given the request a position, which it gives all but warm-ups. */
export const isOfSequence = <P extends Declared>(request: HandledRequest<P>): boolean =>
  request instanceof RequestScope && request.position !== undefined

/** The position that the queue has given a request; of a warm-up, a sequence of one request. */
export const positionOf = <P extends Declared>(request: HandledRequest<P>): SequencePosition =>
  (request instanceof RequestScope ? request.position : undefined) ?? {
    id: 0n,
    isStart: true,
    isEnd: true,
    isReady: true,
    state: noState(),
  }

export const handledPosition = ({ id, isStart, isEnd }: SequencePosition): HandledPosition => ({ id, isStart, isEnd })

/** The request as its handler sees it, with a state that its model declares. */
export const handledSequence = <P extends Declared>(
  request: HandledRequest<P>,
  position: SequencePosition,
  state: unknown,
): HandledSequence<P> => {
  const sequence = handledPosition(position)
  if (!(request instanceof RequestScope)) return Object.assign(request, { sequence, state: state as StateOf<P> })
  // Properties that it has already: added ones would cost several times as much.
  request.sequence = sequence
  request.state = state
  return request as HandledRequest<P> as HandledSequence<P>
}
