/**
 * The digit network, a small LeNet: its layers, its forward pass for one picture, and its loss. Adam.ts has the
 * optimiser, OnnxModel.ts writes the file.
 *
 *   image          conv 5×5      pool 2×2      conv 5×5     pool 2×2     flatten  dense   dense
 *   [1,28,28]  →   [8,24,24]  →  [8,12,12]  →  [16,8,8]  →  [16,4,4]  →  [256] →  [64] →  [10] logits
 *                  + ReLU                      + ReLU                             + ReLU
 */
import { convolution } from "./Convolution.ts"
import { dense } from "./Dense.ts"
import { flatten } from "./Flatten.ts"
import type { Layer } from "./Layer.ts"
import { maxPool } from "./MaxPool.ts"
import type { Random } from "./Random.ts"
import { relu } from "./Relu.ts"

export type Network = ReadonlyArray<Layer>

export const make = (random: Random): Network => [
  convolution({ name: "conv1", inputs: 1, outputs: 8, kernel: 5, side: 28, random }),
  relu(8 * 24 * 24),
  maxPool(8, 24),
  convolution({ name: "conv2", inputs: 8, outputs: 16, kernel: 5, side: 12, random }),
  relu(16 * 8 * 8),
  maxPool(16, 8),
  flatten(),
  dense({ name: "dense1", inputs: 256, outputs: 64, random }),
  relu(64),
  dense({ name: "dense2", inputs: 64, outputs: 10, random }),
]

/** One logit per digit, for 28×28 values in 0..1 where 1 is ink. Valid until the next call. */
export const logits = (network: Network, image: Float32Array): Float32Array =>
  network.reduce<Float32Array>((values, layer) => layer.forward(values), image)

/** The digit with the greatest logit. */
export const digit = (values: Float32Array): number => values.indexOf(Math.max(...values))

/** Adds one picture's gradient of the cross-entropy to every parameter; returns the loss in nats. */
export const learn = (network: Network, image: Float32Array, label: number): number => {
  const values = logits(network, image)
  const greatest = Math.max(...values)
  const exponentials = values.map((value) => Math.exp(value - greatest))
  const sum = exponentials.reduce((total, value) => total + value)
  const gradient = exponentials.map((value, index) => value / sum - (index === label ? 1 : 0))
  network.reduceRight<Float32Array>((slopes, layer) => layer.backward(slopes), gradient)
  return Math.log(sum) - (values[label]! - greatest)
}
