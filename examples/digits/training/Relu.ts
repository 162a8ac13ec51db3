/**
 * max(0, x) of each of `size` values.
 */
import type { Layer } from "./Layer.ts"

export const relu = (size: number): Layer => {
  const output = new Float32Array(size)
  const inputGradient = new Float32Array(size)

  return {
    operator: "Relu",
    attributes: {},
    parameters: [],
    forward: (input) => {
      for (let index = 0; index < size; index++) output[index] = Math.max(0, input[index]!)
      return output
    },
    backward: (gradient) => {
      for (let index = 0; index < size; index++) inputGradient[index] = output[index]! > 0 ? gradient[index]! : 0
      return inputGradient
    },
  }
}
