/**
 * A model whose code may ask other models, and whom it waits for meanwhile. Models that wait for each other in a circle hold
 * each other's instances for ever, so the question that would close a circle is refused. That is also one of two models that
 * ask each other on behalf of different requests: it takes no chain of calls, only instances that are all taken.
 */
import { ExecutionFailed } from "../error/InferenceError.ts"

export class CallCycleDetector {
  readonly model: string
  /** Whom it asks right now, by the number of questions; empty for most models at most times. */
  readonly #waitsFor = new Map<CallCycleDetector, number>()

  constructor(model: string) {
    this.model = model
  }

  /** It waits for the other until `end`; or an error says why it must not. */
  begin(other: CallCycleDetector): ExecutionFailed | undefined {
    const back = other.#wayTo(this, new Set())
    if (back !== undefined) return circle([this, ...back])
    this.#waitsFor.set(other, (this.#waitsFor.get(other) ?? 0) + 1)
    return undefined
  }

  /** One of its questions to the other is over. */
  end(other: CallCycleDetector): void {
    const questions = this.#waitsFor.get(other) ?? 0
    if (questions > 1) this.#waitsFor.set(other, questions - 1)
    else this.#waitsFor.delete(other)
  }

  /** From here to the model that waits in the end. */
  #wayTo(end: CallCycleDetector, seen: Set<CallCycleDetector>): ReadonlyArray<CallCycleDetector> | undefined {
    if (this === end) return [this]
    seen.add(this)
    for (const next of this.#waitsFor.keys()) {
      const way = seen.has(next) ? undefined : next.#wayTo(end, seen)
      if (way !== undefined) return [this, ...way]
    }
    return undefined
  }
}

const circle = (way: ReadonlyArray<CallCycleDetector>): ExecutionFailed => {
  const [asking, asked] = way
  const whom = asking === asked ? "itself" : `model '${asked?.model}'`
  const why = `they would wait for each other for ever: ${way.map(({ model }) => model).join(" → ")}`
  return new ExecutionFailed({ message: `model '${asking?.model}' must not ask ${whom}, as ${why}` })
}
