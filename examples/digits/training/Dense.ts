/**
 * A fully connected layer: [inputs] → [outputs], output = weight · input + bias.
 */
import { type Layer, parameter } from "./Layer.ts"
import type { Random } from "./Random.ts"

export interface DenseOptions {
  readonly name: string
  readonly inputs: number
  readonly outputs: number
  readonly random: Random
}

export const dense = ({ name, inputs, outputs, random }: DenseOptions): Layer => {
  const deviation = Math.sqrt(2 / inputs)
  const weight = parameter(`${name}.weight`, [outputs, inputs], () => random.normal() * deviation)
  const bias = parameter(`${name}.bias`, [outputs], () => 0)
  const output = new Float32Array(outputs)
  const inputGradient = new Float32Array(inputs)
  let input: Float32Array = inputGradient

  return {
    operator: "Gemm",
    attributes: { transB: 1 }, // the weight is [outputs, inputs]
    parameters: [weight, bias],
    forward: (given) => {
      input = given
      for (let to = 0; to < outputs; to++) {
        let sum = bias.values[to]!
        for (let from = 0; from < inputs; from++) sum += weight.values[to * inputs + from]! * input[from]!
        output[to] = sum
      }
      return output
    },
    backward: (gradient) => {
      inputGradient.fill(0)
      for (let to = 0; to < outputs; to++) {
        const slope = gradient[to]!
        if (slope === 0) continue // closed by the ReLU that follows
        bias.gradient[to]! += slope
        for (let from = 0; from < inputs; from++) {
          weight.gradient[to * inputs + from]! += slope * input[from]!
          inputGradient[from]! += slope * weight.values[to * inputs + from]!
        }
      }
      return inputGradient
    },
  }
}
