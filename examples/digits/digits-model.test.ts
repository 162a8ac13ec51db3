/** The committed model and pictures, which train.ts generates. The tests of the layers are beside the layers. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { decode } from "fast-png"
import { assert, test } from "vitest"
import * as Classifier from "./training/Classifier.ts"
import * as Mnist from "./training/Mnist.ts"

const modelPath = join(import.meta.dirname, "digits.onnx")
const picturesFolder = join(import.meta.dirname, "pictures")
// MNIST is not in the repository; where it is not at hand, the held-out pictures are not measured.
const mnistFolder = process.env["MNIST_FOLDER"] ?? join(import.meta.dirname, "../../../shared/data/mnist")

const pictures = readdirSync(picturesFolder).filter((name) => name.endsWith(".png"))
const classify = await Classifier.load(readFileSync(modelPath))

const read = (name: string): Float32Array => {
  const { width, height, channels, depth, data } = decode(readFileSync(join(picturesFolder, name)))
  assert.deepEqual({ width, height, channels, depth }, { width: 28, height: 28, channels: 1, depth: 8 })
  return Float32Array.from(data, (grey) => grey / 255)
}

test("the model is small enough to live in the repository", () => {
  assert.isAtMost(statSync(modelPath).size, 500_000)
})

test("there is a picture of every digit", () => {
  assert.deepEqual(
    pictures.map((name) => name[0]),
    [..."0123456789"],
  )
})

test.each(pictures)("%s is recognised", async (name) => {
  const responses = await classify([read(name)])
  assert.equal(responses[0]?.digit, Number(name[0]))
})

test("a batch gives each picture the answer that it has alone", async () => {
  const images = pictures.map(read)
  const single = await Promise.all(images.map(async (image) => (await classify([image]))[0]!))
  const together = await classify(images)
  assert.equal(together.length, images.length)
  for (const [row, { digit, margin }] of together.entries()) {
    assert.equal(digit, single[row]?.digit)
    assert.closeTo(margin, single[row]!.margin, 1e-3)
  }
})

test.skipIf(!existsSync(mnistFolder))("at least 97.5 % of the 1,000 held-out pictures are recognised", async () => {
  const mnist = Mnist.read(mnistFolder)
  const responses = await classify(Mnist.heldOut.map(mnist.image))
  const right = responses.filter(({ digit }, row) => digit === mnist.label(Mnist.heldOut[row]!))
  assert.isAtLeast(right.length, 975)
})
