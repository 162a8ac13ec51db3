/**
 * The last steps, each as JSON that is made once: viewers receive the same bytes, later ones as part of the opening.
 * The ring is bounded in steps and in bytes; the oldest steps leave first.
 */
import { type LiveStep, maxRingBytes, maxSteps } from "@nereid/dashboard/internal/live/LiveStep"

export class StepRing {
  readonly #maxSteps: number
  readonly #maxBytes: number
  readonly #steps: Array<Buffer> = []
  #bytes = 0

  constructor(maxSteps_: number = maxSteps, maxBytes: number = maxRingBytes) {
    this.#maxSteps = maxSteps_
    this.#maxBytes = maxBytes
  }

  /** Bytes of all steps. */
  get bytes(): number {
    return this.#bytes
  }

  get size(): number {
    return this.#steps.length
  }

  /** Adds a step, and returns its JSON. */
  add(step: LiveStep): Buffer {
    const json = Buffer.from(`,${JSON.stringify(step)}`)
    this.#steps.push(json)
    this.#bytes += json.length
    let excess = 0
    while (
      this.#steps.length - excess > this.#maxSteps ||
      (this.#bytes > this.#maxBytes && excess < this.#steps.length)
    ) {
      this.#bytes -= this.#steps[excess]?.length ?? 0
      excess += 1
    }
    if (excess > 0) this.#steps.splice(0, excess)
    return json.subarray(1)
  }

  /** The steps as elements of a JSON array, with commas between them. */
  chunks(): ReadonlyArray<Buffer> {
    return this.#steps.map((json, index) => (index === 0 ? json.subarray(1) : json))
  }
}
