/**
 * The Adam optimiser (Kingma & Ba 2015, algorithm 1) with the paper's constants.
 */
import type { Parameter } from "./Layer.ts"

export interface Adam {
  /** Moves every parameter against its mean gradient over `batchSize` pictures and sets the gradients to zero. */
  readonly step: (rate: number, batchSize: number) => void
}

export const make = (parameters: ReadonlyArray<Parameter>): Adam => {
  const firstDecay = 0.9
  const secondDecay = 0.999
  const tiny = 1e-8
  const moments = parameters.map(({ values }) => ({
    first: new Float32Array(values.length),
    second: new Float32Array(values.length),
  }))
  let steps = 0

  return {
    step: (rate, batchSize) => {
      steps++
      const firstBias = 1 - firstDecay ** steps
      const secondBias = 1 - secondDecay ** steps
      for (const [parameter, { values, gradient }] of parameters.entries()) {
        const { first, second } = moments[parameter]!
        for (let index = 0; index < values.length; index++) {
          const slope = gradient[index]! / batchSize
          first[index] = firstDecay * first[index]! + (1 - firstDecay) * slope
          second[index] = secondDecay * second[index]! + (1 - secondDecay) * slope * slope
          values[index]! -= (rate * (first[index]! / firstBias)) / (Math.sqrt(second[index]! / secondBias) + tiny)
        }
        gradient.fill(0)
      }
    },
  }
}
