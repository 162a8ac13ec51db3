/**
 * A running model: on ONNX instances, in a handler or on another server. The store of a server holds it, front ends
 * call it, and a typed service wraps it.
 */
import { Context } from "effect"
import type { CallCycleDetector } from "../request/CallCycleDetector.ts"
import type { ModelCalls } from "./CallableModel.ts"
import type { ModelDescription } from "./ModelDescription.ts"
import type { ModelLife } from "./ModelLife.ts"

/**
 * The model that replaces a retired one for its typed callers; `caller` is the calling model, if a model calls.
 */
export type Successor = (caller: CallCycleDetector | undefined) => RunningModel

/** One version of a model that the server runs: its description, calls and lifecycle. */
export class RunningModel {
  /** Name, signature and other static properties. */
  readonly description: ModelDescription
  /** How it is called. */
  readonly calls: ModelCalls
  readonly life: ModelLife
  #successor: Successor | undefined

  constructor({ description, calls, life }: Pick<RunningModel, "description" | "calls" | "life">) {
    this.description = description
    this.calls = calls
    this.life = life
  }

  /** The model that a typed caller reaches: this one, or its successor once it has left. */
  reachedBy(caller: CallCycleDetector | undefined): RunningModel {
    return this.#successor === undefined ? this : this.#successor(caller)
  }

  /** Typed callers reach the successor from now on. */
  setSuccessor(successor: Successor): void {
    this.#successor = successor
  }
}

/** Receives every model that starts in its context, before its first request. Default: no effect. */
export const Watcher = Context.Reference<(model: RunningModel) => void>("@nereid/core/Watcher", {
  defaultValue: () => () => {},
})
