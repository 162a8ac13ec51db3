/**
 * Trains the digit network on MNIST's 10,000 test pictures and writes digits.onnx and pictures/:
 *
 *   node examples/digits/train.ts <folder with t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz>
 *
 * Pictures 0–8,999 train; 9,000–9,999 are held out: they are only measured, never chosen by. The seed is fixed, so the
 * same Node gives the same file. Everything is plain TypeScript; ONNX Runtime only measures the finished file.
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { encode as encodePng } from "fast-png"
import * as Adam from "./training/Adam.ts"
import { distort } from "./training/Augmentation.ts"
import * as Classifier from "./training/Classifier.ts"
import * as Mnist from "./training/Mnist.ts"
import * as Network from "./training/Network.ts"
import * as OnnxModel from "./training/OnnxModel.ts"
import * as Random from "./training/Random.ts"

type ClassifiedDigit = Classifier.Classification & { readonly index: number }

const epochs = 20
const batchSize = 30 // divides 9,000
const startRate = 0.002
const seed = 1
const minAccuracy = 0.975

const train = (mnist: Mnist.Mnist): Network.Network => {
  const random = Random.make(seed)
  const network = Network.make(random)
  const adam = Adam.make(network.flatMap((layer) => layer.parameters))
  const images = Array.from(Mnist.trained, mnist.image)
  const order = Mnist.trained.slice()
  const steps = (epochs * order.length) / batchSize
  let step = 0

  for (let epoch = 1; epoch <= epochs; epoch++) {
    const started = performance.now()
    let loss = 0
    random.shuffle(order)
    for (let start = 0; start < order.length; start += batchSize) {
      for (const index of order.subarray(start, start + batchSize)) {
        const image = distort(images[index]!, Mnist.side, random)
        loss += Network.learn(network, image, mnist.label(index))
      }
      adam.step(startRate * (1 - step++ / steps), batchSize)
    }
    const right = Mnist.heldOut.filter(
      (index) => Network.digit(Network.logits(network, mnist.image(index))) === mnist.label(index),
    )
    const seconds = (performance.now() - started) / 1000
    console.log(
      `epoch ${epoch}/${epochs}: loss ${(loss / order.length).toFixed(4)}, ` +
        `held out ${percent(right.length / Mnist.heldOut.length)}, ${seconds.toFixed(1)} s`,
    )
  }
  return network
}

/**
 * One held-out picture per digit, 28×28 8-bit grey with white ink on black as in MNIST, named <label>-<index>.png. For
 * most digits it is the first; for the two digits with the most doubtful right answers it is the hardest one.
 */
const writePictures = (folder: string, mnist: Mnist.Mnist, right: ReadonlyArray<ClassifiedDigit>): void => {
  mkdirSync(folder, { recursive: true })
  for (const old of readdirSync(folder)) if (/^\d-\d+\.png$/.test(old)) rmSync(join(folder, old))

  const hardest = new Map<number, ClassifiedDigit>()
  // A margin of 1 logit is e times as likely as the runner-up: doubtful, but no rounding on another machine turns it.
  const doubtful = right.filter(({ margin }) => margin > 1).toSorted((one, other) => one.margin - other.margin)
  for (const response of doubtful) {
    if (hardest.size < 2 && !hardest.has(response.digit)) hardest.set(response.digit, response)
  }
  for (let digit = 0; digit < 10; digit++) {
    const { index } = hardest.get(digit) ?? right.find((response) => response.digit === digit)!
    const png = encodePng({ width: Mnist.side, height: Mnist.side, data: mnist.pixels(index), depth: 8, channels: 1 })
    writeFileSync(join(folder, `${digit}-${index}.png`), png)
  }
}

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`

const [mnistFolder] = process.argv.slice(2)
if (mnistFolder === undefined) throw new Error("usage: node examples/digits/train.ts <mnist-folder>")

const mnist = Mnist.read(mnistFolder)
const model = OnnxModel.encode(train(mnist))
const classify = await Classifier.load(model)
const responses = await classify(Mnist.heldOut.map(mnist.image))
const right = responses.flatMap((response, row): ReadonlyArray<ClassifiedDigit> => {
  const index = Mnist.heldOut[row]!
  return response.digit === mnist.label(index) ? [{ ...response, index }] : []
})
const accuracy = right.length / Mnist.heldOut.length
console.log(`digits.onnx: ${model.length} bytes, held out ${percent(accuracy)}`)
if (accuracy < minAccuracy) {
  throw new Error(`held-out accuracy ${percent(accuracy)} is under ${percent(minAccuracy)}; nothing was written`)
}
writeFileSync(join(import.meta.dirname, "digits.onnx"), model)
writePictures(join(import.meta.dirname, "pictures"), mnist, right)
