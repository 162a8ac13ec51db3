/**
 * The greatest of each 2×2 block: [channels, side, side] → [channels, side / 2, side / 2], for an even side.
 */
import type { Layer } from "./Layer.ts"

export const maxPool = (channels: number, side: number): Layer => {
  const half = side / 2
  const output = new Float32Array(channels * half * half)
  const inputGradient = new Float32Array(channels * side * side)
  const chosen = new Uint32Array(output.length)

  return {
    operator: "MaxPool",
    attributes: { kernel_shape: [2, 2], strides: [2, 2] },
    parameters: [],
    forward: (input) => {
      for (let to = 0; to < output.length; to++) {
        // Channels lie one under the other, so a row of blocks is two rows of one picture `channels` times as high.
        const topLeft = Math.floor(to / half) * 2 * side + (to % half) * 2
        let best = topLeft
        if (input[topLeft + 1]! > input[best]!) best = topLeft + 1
        if (input[topLeft + side]! > input[best]!) best = topLeft + side
        if (input[topLeft + side + 1]! > input[best]!) best = topLeft + side + 1
        chosen[to] = best
        output[to] = input[best]!
      }
      return output
    },
    backward: (gradient) => {
      inputGradient.fill(0)
      for (let to = 0; to < output.length; to++) inputGradient[chosen[to]!] = gradient[to]!
      return inputGradient
    },
  }
}
