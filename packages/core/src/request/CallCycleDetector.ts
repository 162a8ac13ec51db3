/**
 * A model whose code may call other models, and its pending calls. Models that wait for each other in a cycle block
 * each other's instances forever, so a call that would close a cycle is rejected. The calls of a cycle may belong to
 * different requests: two models that call each other deadlock if all their instances are busy.
 */
import { ExecutionFailed } from "../error/InferenceError.ts"

export class CallCycleDetector {
  readonly model: string
  /** Models with a pending call from this one, and the number of these calls. */
  readonly #callees = new Map<CallCycleDetector, number>()

  constructor(model: string) {
    this.model = model
  }

  /** Begins a call, which lasts until `end`; or returns the error of a call that would close a cycle. */
  begin(other: CallCycleDetector): ExecutionFailed | undefined {
    const cycle = other.#pathTo(this, new Set())
    if (cycle !== undefined) return cycleError([this, ...cycle])
    this.#callees.set(other, (this.#callees.get(other) ?? 0) + 1)
    return undefined
  }

  /** Ends a call. */
  end(other: CallCycleDetector): void {
    const calls = this.#callees.get(other) ?? 0
    if (calls > 1) this.#callees.set(other, calls - 1)
    else this.#callees.delete(other)
  }

  /** The models from this one to `end`, if they wait for each other. */
  #pathTo(end: CallCycleDetector, seen: Set<CallCycleDetector>): ReadonlyArray<CallCycleDetector> | undefined {
    if (this === end) return [this]
    seen.add(this)
    for (const next of this.#callees.keys()) {
      const path = seen.has(next) ? undefined : next.#pathTo(end, seen)
      if (path !== undefined) return [this, ...path]
    }
    return undefined
  }
}

const cycleError = (path: ReadonlyArray<CallCycleDetector>): ExecutionFailed => {
  const [caller, callee] = path
  const calleeName = caller === callee ? "itself" : `model '${callee?.model}'`
  const reason = `the calls would wait for each other forever: ${path.map(({ model }) => model).join(" → ")}`
  return new ExecutionFailed({ message: `model '${caller?.model}' cannot call ${calleeName}, because ${reason}` })
}
