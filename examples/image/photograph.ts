/**
 * Generates photographs/ from ../digits/pictures, the held-out digits of MNIST. Each digit is drawn with a pen on
 * squared paper, skewed, under uneven light with a shadow. A simulated small camera adds blur and noise:
 *
 *   node examples/image/photograph.ts
 *
 * The seed is fixed, and every picture is the first that came out.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { decode } from "fast-png"
import sharp from "sharp"
import * as Random from "../digits/training/Random.ts"

const width = 480
const height = 360
const seed = 7

/** Squares of the paper per height of the picture, and the digit's height in squares. */
const squares = 9
const digitSquares = 5

/** A smooth field of chance in 0..1, with `cells` hills across the picture's height. */
const grain = (random: Random.Random, cells: number): ((x: number, y: number) => number) => {
  const size = 64
  const values = Float32Array.from({ length: size * size }, () => random.next())
  const value = (column: number, row: number) =>
    values[(((row % size) + size) % size) * size + (((column % size) + size) % size)] ?? 0
  return (x, y) => {
    const [column, row] = [Math.floor(x * cells), Math.floor(y * cells)]
    const [right, lower] = [smooth(x * cells - column), smooth(y * cells - row)]
    return (
      (1 - lower) * ((1 - right) * value(column, row) + right * value(column + 1, row)) +
      lower * ((1 - right) * value(column, row + 1) + right * value(column + 1, row + 1))
    )
  }
}

const smooth = (x: number): number => x * x * (3 - 2 * x)

/** 0 below `from`, 1 above `to`, smooth between. */
const edge = (from: number, to: number, x: number): number => smooth(Math.min(1, Math.max(0, (x - from) / (to - from))))

/** Returns the ink of a digit at a position, in pixels of MNIST. */
const stroke = (digit: Uint8Array, x: number, y: number): number => {
  const [column, row] = [Math.floor(x - 0.5), Math.floor(y - 0.5)]
  const at = (column: number, row: number) =>
    column < 0 || row < 0 || column >= 28 || row >= 28 ? 0 : (digit[row * 28 + column] ?? 0) / 255
  const [right, lower] = [smooth(x - 0.5 - column), smooth(y - 0.5 - row)]
  const ink =
    (1 - lower) * ((1 - right) * at(column, row) + right * at(column + 1, row)) +
    lower * ((1 - right) * at(column, row + 1) + right * at(column + 1, row + 1))
  return edge(0.3, 0.55, ink)
}

const photograph = (digit: Uint8Array, random: Random.Random): Buffer => {
  const angle = random.around(0.15)
  const [tiltX, tiltY] = [random.around(0.25), random.around(0.25)]
  const [moveX, moveY] = [random.around(0.15), random.around(0.1)]
  const [lineX, lineY] = [random.next(), random.next()]
  const lightAngle = random.around(Math.PI)
  const shadowAngle = random.around(Math.PI)
  const shadowPlace = 0.1 + random.around(0.2)
  const shadow = 0.55 + random.around(0.1)
  const [fibres, blotches, flow] = [grain(random, 150), grain(random, 5), grain(random, 40)]
  const pen = random.next() < 0.5 ? [0.13, 0.16, 0.4] : [0.16, 0.15, 0.15]
  const lamp = [1, 0.96 + random.around(0.02), 0.86 + random.around(0.06)]

  const pixels = Buffer.alloc(width * height * 3)
  for (let pixel = 0; pixel < width * height; pixel++) {
    // The camera's view, -0.5..0.5 in its height, back to the paper.
    const viewX = ((pixel % width) - width / 2) / height
    const viewY = (Math.floor(pixel / width) - height / 2) / height
    const depth = 1 + tiltX * viewX + tiltY * viewY
    const x = (Math.cos(angle) * viewX - Math.sin(angle) * viewY) / depth + moveX
    const y = (Math.sin(angle) * viewX + Math.cos(angle) * viewY) / depth + moveY

    const toLine = (place: number) => Math.abs((((place % 1) + 1.5) % 1) - 0.5)
    const line = 1 - edge(0.01, 0.05, Math.min(toLine(x * squares + lineX), toLine(y * squares + lineY)))
    const paper = 0.93 + 0.05 * (fibres(x, y) - 0.5) + 0.04 * (blotches(x, y) - 0.5)
    const scale = (squares / digitSquares) * 28
    const ink = stroke(digit, x * scale + 14, y * scale + 14) * (0.82 + 0.18 * flow(x, y))
    const away = Math.cos(lightAngle) * viewX + Math.sin(lightAngle) * viewY
    const behind = Math.cos(shadowAngle) * viewX + Math.sin(shadowAngle) * viewY - shadowPlace
    const light =
      (0.82 + 0.3 * away) * (1 - 0.3 * (viewX ** 2 + viewY ** 2)) * (1 - (1 - shadow) * edge(-0.06, 0.06, behind))
    for (let channel = 0; channel < 3; channel++) {
      const squared = paper * (1 - line * [0.22, 0.14, 0.06][channel]!)
      const colour = (squared * (1 - ink) + pen[channel]! * ink) * light * lamp[channel]!
      pixels[pixel * 3 + channel] = Math.min(255, Math.max(0, 255 * (colour + 0.025 * random.normal())))
    }
  }
  return pixels
}

const from = join(import.meta.dirname, "../digits/pictures")
const to = join(import.meta.dirname, "photographs")
const random = Random.make(seed)
mkdirSync(to, { recursive: true })
for (const name of readdirSync(from)) {
  const { data } = decode(readFileSync(join(from, name)))
  const pixels = photograph(Uint8Array.from(data), random)
  const jpeg = await sharp(pixels, { raw: { width, height, channels: 3 } })
    .blur(0.9)
    .jpeg({ quality: 75 })
    .toBuffer()
  writeFileSync(join(to, name.replace(".png", ".jpg")), jpeg)
}
