/**
 * The progress of a request at one level of its graph. Level 0 is the request; each response of a decoupled step opens
 * a level, which also sees the tensors of the levels above. Data only; EnsembleRequest.ts changes it.
 */
import type { InferenceError } from "../error/InferenceError.ts"
import { noParameters, type Parameters, type Response } from "../request/Request.ts"
import type { TypedTensor } from "../tensor/TypedTensor.ts"
import type { EnsembleGraph, LinkedStep } from "./EnsembleGraph.ts"

export class EnsembleFlow {
  readonly parent: EnsembleFlow | undefined
  readonly level: number
  /** Tensors of this level, by position: null if omitted, undefined if pending. */
  readonly tensors: Array<TypedTensor | null | undefined> = []
  readonly started = new Set<LinkedStep>()
  /** Those of the responses that its tensors came with, the later ones over the earlier. */
  #parameters: Parameters = noParameters
  /** One for each response of its decoupled step, in their order, without those that were passed on already. */
  readonly children: Array<EnsembleFlow> = []
  /** Whether no more of them come. */
  isComplete = false
  /** All outputs of the request, where this is the level that has them. */
  response: Response | undefined
  /** Whether a step with exactly one response has made it, so that nothing else follows from this flow. */
  endsWithData = false
  /** The failure that comes in place of further responses. */
  failure: InferenceError | undefined
  /** Cancels its decoupled step. */
  stop: (() => void) | undefined
  /** Number of children with responses that the caller does not have yet. */
  pendingChildren = 0
  /** Resumes its decoupled step. */
  readonly resumes = new Set<() => void>()

  constructor(parent?: EnsembleFlow) {
    this.parent = parent
    this.level = parent === undefined ? 0 : parent.level + 1
  }

  set(position: number, tensor: TypedTensor | null): void {
    this.tensors[position] = tensor
  }

  /** Also of a level above. */
  get(position: number, { levels }: EnsembleGraph): TypedTensor | null | undefined {
    return this.#at(levels[position] ?? 0).tensors[position]
  }

  has(positions: ReadonlyArray<number>, graph: EnsembleGraph): boolean {
    for (const position of positions) {
      if (position >= 0 && this.get(position, graph) === undefined) return false
    }
    return true
  }

  /** Adds the parameters of a response; they become parameters of the ensemble's response. */
  add(parameters: Parameters): void {
    if (parameters === noParameters) return
    this.#parameters = this.#parameters === noParameters ? parameters : { ...this.#parameters, ...parameters }
  }

  /** With those of the levels above. */
  get parameters(): Parameters {
    const above = this.parent?.parameters ?? noParameters
    if (above === noParameters) return this.#parameters
    return this.#parameters === noParameters ? above : { ...above, ...this.#parameters }
  }

  #at(level: number): EnsembleFlow {
    return this.level === level || this.parent === undefined ? this : this.parent.#at(level)
  }
}
