/**
 * A convolution over square pictures without padding, stride 1: [inputs, side, side] → [outputs, side - kernel + 1, …].
 */
import { type Layer, parameter } from "./Layer.ts"
import type { Random } from "./Random.ts"

export interface ConvolutionOptions {
  readonly name: string
  readonly inputs: number
  readonly outputs: number
  readonly kernel: number
  /** Width and height of the input. */
  readonly side: number
  readonly random: Random
}

export const convolution = ({ name, inputs, outputs, kernel, side, random }: ConvolutionOptions): Layer => {
  const outputSide = side - kernel + 1
  if (outputSide % 4 !== 0) {
    throw new Error(`${name}: the output would be ${outputSide} pixels wide; a multiple of 4 is needed`)
  }
  const taps = inputs * kernel * kernel
  const deviation = Math.sqrt(2 / taps) // He et al. 2015, for the ReLU that follows
  const weight = parameter(`${name}.weight`, [outputs, inputs, kernel, kernel], () => random.normal() * deviation)
  const bias = parameter(`${name}.bias`, [outputs], () => 0)
  const output = new Float32Array(outputs * outputSide * outputSide)
  const inputGradient = new Float32Array(inputs * side * side)
  let input: Float32Array = inputGradient

  // Offset of each tap of the kernel, relative to the top left corner of its window.
  const offsets = Int32Array.from({ length: taps }, (_, tap) => {
    const column = tap % kernel
    const row = Math.floor(tap / kernel) % kernel
    const channel = Math.floor(tap / (kernel * kernel))
    return (channel * side + row) * side + column
  })

  return {
    operator: "Conv",
    attributes: { kernel_shape: [kernel, kernel] },
    parameters: [weight, bias],
    forward: (given) => {
      input = given
      let to = 0
      for (let channel = 0; channel < outputs; channel++) {
        for (let row = 0; row < outputSide; row++) {
          // Four pixels at a time, whose sums do not wait for each other: more than twice as fast as one.
          for (let column = 0; column < outputSide; column += 4) {
            const corner = row * side + column
            let sum0 = bias.values[channel]!
            let sum1 = sum0
            let sum2 = sum0
            let sum3 = sum0
            for (let tap = 0; tap < taps; tap++) {
              const factor = weight.values[channel * taps + tap]!
              const at = corner + offsets[tap]!
              sum0 += factor * input[at]!
              sum1 += factor * input[at + 1]!
              sum2 += factor * input[at + 2]!
              sum3 += factor * input[at + 3]!
            }
            output[to++] = sum0
            output[to++] = sum1
            output[to++] = sum2
            output[to++] = sum3
          }
        }
      }
      return output
    },
    backward: (gradient) => {
      inputGradient.fill(0)
      let from = 0
      for (let channel = 0; channel < outputs; channel++) {
        for (let row = 0; row < outputSide; row++) {
          for (let column = 0; column < outputSide; column++) {
            const slope = gradient[from++]!
            if (slope === 0) continue // at least three in four, since a pooling layer follows
            const corner = row * side + column
            bias.gradient[channel]! += slope
            for (let tap = 0; tap < taps; tap++) {
              const at = corner + offsets[tap]!
              weight.gradient[channel * taps + tap]! += slope * input[at]!
              inputGradient[at]! += slope * weight.values[channel * taps + tap]!
            }
          }
        }
      }
      return inputGradient
    },
  }
}
