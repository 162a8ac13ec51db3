import { assert, test } from "vitest"
import * as Adam from "./Adam.ts"
import * as Classifier from "./Classifier.ts"
import { convolution } from "./Convolution.ts"
import { dense } from "./Dense.ts"
import type { Layer } from "./Layer.ts"
import { maxPool } from "./MaxPool.ts"
import * as Network from "./Network.ts"
import * as OnnxModel from "./OnnxModel.ts"
import * as Random from "./Random.ts"
import { relu } from "./Relu.ts"

const image = (random: Random.Random): Float32Array => Float32Array.from({ length: 28 * 28 }, random.next)

const dot = (one: Float32Array, other: Float32Array): number =>
  one.reduce((sum, value, index) => sum + value * other[index]!, 0)

/**
 * Holds `backward` to central differences of loss = forward(input) · slopes. The layers are piecewise linear, so a
 * difference is exact but for rounding as long as the values below stay on their side of a fold: they are multiples of
 * 0.1, in shuffled order, and are moved by 0.02.
 */
const checkGradients = (layer: Layer, inputSize: number, outputSize: number): void => {
  const random = Random.make(7)
  const order = Uint32Array.from({ length: inputSize }, (_, index) => index)
  random.shuffle(order)
  const input = Float32Array.from(order, (place) => 0.1 * (place - inputSize / 2 + 0.5))
  const slopes = Float32Array.from({ length: outputSize }, random.normal)

  layer.forward(input)
  const inputGradient = layer.backward(slopes).slice()
  const checked = [
    { name: "input", values: input, gradient: inputGradient },
    ...layer.parameters.map(({ name, values, gradient }) => ({ name, values, gradient })),
  ]
  for (const { name, values, gradient } of checked) {
    for (const [index, value] of values.entries()) {
      values[index] = value + 0.02
      const above = dot(layer.forward(input), slopes)
      values[index] = value - 0.02
      const below = dot(layer.forward(input), slopes)
      values[index] = value
      assert.closeTo(gradient[index]!, (above - below) / 0.04, 0.01, `${name}[${index}]`)
    }
  }
}

test("a convolution's gradients are its slopes", () => {
  const options = { name: "conv", inputs: 2, outputs: 3, kernel: 3, side: 6, random: Random.make(1) }
  checkGradients(convolution(options), 2 * 6 * 6, 3 * 4 * 4)
})

test("a dense layer's gradients are its slopes", () => {
  checkGradients(dense({ name: "dense", inputs: 9, outputs: 4, random: Random.make(1) }), 9, 4)
})

test("a ReLU's gradient is its slope", () => checkGradients(relu(12), 12, 12))

test("a pooling layer's gradient is its slope", () => checkGradients(maxPool(2, 4), 2 * 4 * 4, 2 * 2 * 2))

test("a few steps on one picture make its label likely", () => {
  const random = Random.make(1)
  const network = Network.make(random)
  const adam = Adam.make(network.flatMap((layer) => layer.parameters))
  const picture = image(random)
  const first = Network.learn(network, picture, 3)
  adam.step(0.001, 1)
  for (let step = 0; step < 20; step++) {
    Network.learn(network, picture, 3)
    adam.step(0.001, 1)
  }
  assert.isBelow(Network.learn(network, picture, 3), first / 10)
})

test("ONNX Runtime computes from the written file what the network computes", async () => {
  const random = Random.make(2)
  const network = Network.make(random)
  const images = Array.from({ length: 3 }, () => image(random))
  const classify = await Classifier.load(OnnxModel.encode(network))
  for (const [row, { digit, margin }] of (await classify(images)).entries()) {
    const values = Network.logits(network, images[row]!).toSorted((one, other) => other - one)
    assert.equal(digit, Network.digit(Network.logits(network, images[row]!)))
    assert.closeTo(margin, values[0]! - values[1]!, 1e-4)
  }
})
