/**
 * Pictures to pixels to tensors. As a caller's, over the network and broken in every way: examples/image/image.test.ts.
 */
import { Effect, Exit } from "effect"
import sharp from "sharp"
import { expect, it } from "vitest"
import * as Pixels from "./Pixels.ts"

/** Two pixels: red, and a grey. */
const picture = () =>
  sharp(Uint8Array.of(255, 0, 0, 51, 51, 51), { raw: { width: 2, height: 1, channels: 3 } })
    .png()
    .toBuffer()

const size = { width: 2, height: 1 } as const

it("has the bytes of a picture by rows, with the size in its type", async () => {
  const pixels = await Effect.runPromise(Pixels.colours(await picture(), size))
  expect(pixels).toEqual({ data: Buffer.of(255, 0, 0, 51, 51, 51), width: 2, height: 1, channels: 3 })
})

it("puts channels last or first, from -1 to 1", async () => {
  const pixels = await Effect.runPromise(Pixels.colours(await picture(), size))
  const last = Pixels.channelsLast(pixels)
  expect([last.shape, [...last.data].map((value) => value.toFixed(1))]).toEqual([
    [1, 2, 3],
    ["1.0", "-1.0", "-1.0", "-0.6", "-0.6", "-0.6"],
  ])
  const first = Pixels.channelsFirst(pixels)
  expect([first.shape, [...first.data].map((value) => value.toFixed(1))]).toEqual([
    [3, 1, 2],
    ["1.0", "-0.6", "-1.0", "-0.6", "-1.0", "-0.6"],
  ])
})

it("normalizes each channel by its own mean and deviation", async () => {
  const pixels = await Effect.runPromise(Pixels.colours(await picture(), size))
  const { data } = Pixels.channelsLast(pixels, { mean: [255, 0, 51], deviation: [1, 51, 2] })
  expect([...data]).toEqual([0, 0, -25.5, -204, 1, 0])
})

it("makes a grey picture smaller and never larger", async () => {
  const grey = (longest: number) => picture().then((bytes) => Effect.runPromise(Pixels.greys(bytes, { longest })))
  expect(await grey(9)).toMatchObject({ width: 2, height: 1, channels: 1 })
  expect(await grey(1)).toMatchObject({ width: 1, height: 1 })
  expect(Pixels.channelsFirst(await grey(9), { mean: 0, deviation: 1 }).shape).toEqual([1, 1, 2])
})

it("refuses bytes that are not a picture", async () => {
  const exit = await Effect.runPromiseExit(Pixels.colours(Buffer.from("text"), size))
  expect(Exit.isFailure(exit) && String(exit.cause)).toContain("the picture cannot be decoded")
})

it("knows the shape when it is compiled", async () => {
  const pixels = await Effect.runPromise(Pixels.colours(await picture(), size))
  const shape: readonly [1, 2, 3] = Pixels.channelsLast(pixels).shape
  // @ts-expect-error: rows come before columns.
  const turned: readonly [2, 1, 3] = Pixels.channelsLast(pixels).shape
  // @ts-expect-error: channels are first.
  const last: readonly [1, 2, 3] = Pixels.channelsFirst(pixels).shape
  expect([shape, turned, last]).toHaveLength(3)
})
