/** Counts the batches of a model's instances, so that a call of the model by its own code never waits for itself. */
import { Effect, type Scope } from "effect"
import { CallCycleDetector } from "@nereid/core/internal/request/CallCycleDetector"
import { type Instance, wrapInstance } from "@nereid/core/internal/instance/Instance"
import type { CallingModel } from "./ModelCalls.ts"

/** The instances of one version of a model, as callers of other models. */
export class CallingInstances implements CallingModel {
  readonly cycles: CallCycleDetector
  readonly #batches = new Map<Instance, number>()

  constructor(model: string) {
    this.cycles = new CallCycleDetector(model)
  }

  /** Counts the batches of an instance, until the scope closes. */
  add(inner: Instance): Effect.Effect<Instance, never, Scope.Scope> {
    const wrapped = wrapInstance(inner, (batch, settle) => {
      this.#count(inner, 1)
      return inner.execute(batch, (exit) => {
        this.#count(inner, -1)
        settle(exit)
      })
    })
    const counted: Instance = Object.assign(wrapped, { cycles: this.cycles })
    return Effect.acquireRelease(
      Effect.sync(() => {
        this.#batches.set(inner, 0)
        return counted
      }),
      () => Effect.sync(() => void this.#batches.delete(inner)),
    )
  }

  readonly hasFreeInstance = (): boolean => {
    for (const [instance, batches] of this.#batches) {
      if (instance.status() === "available" && batches < instance.concurrency) return true
    }
    return false
  }

  #count(instance: Instance, change: number): void {
    this.#batches.set(instance, (this.#batches.get(instance) ?? 0) + change)
  }
}
