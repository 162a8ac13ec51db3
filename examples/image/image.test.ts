/** The image models over the network, with valid and invalid files. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { crc32 } from "node:zlib"
import { Client } from "@nereid/client"
import { Onnx } from "@nereid/onnx"
import { Server } from "@nereid/server"
import { Layer } from "effect"
import sharp, { type Color, type Sharp } from "sharp"
import { afterAll, beforeAll, describe, expect, it, test } from "vitest"
import * as Random from "../digits/training/Random.ts"
import { Faces, PhotographedDigit, Preprocess, UltraFace } from "./contract.ts"
import { FacesLive } from "./faces.ts"
import { PhotographedDigitLive, PreprocessLive } from "./server.ts"

const photographs = join(import.meta.dirname, "photographs")
const names = readdirSync(photographs)
const photograph = (name: string) => readFileSync(join(photographs, name))

// Neither the network nor these pictures are in the repository.
const shared = process.env["SHARED_DATA"] ?? join(import.meta.dirname, "../../../shared/data")
const ultraFaceFile = join(shared, "models/ultraface-rfb-320.onnx")
const facePicture = join(shared, "images/face.jpg")

const free = { http: { host: "127.0.0.1", port: 0 }, grpc: { host: "127.0.0.1", port: 0 }, metrics: false } as const
const live = Layer.mergeAll(PreprocessLive, PhotographedDigitLive)
const start = () => Server.start([Preprocess, PhotographedDigit], live, free)

let server: Awaited<ReturnType<typeof start>>
beforeAll(async () => {
  server = await start()
})
afterAll(() => server.stop())

/** Posts bytes like `curl --data-binary @file`, without the client's own checks. */
const post = async (model: string, bytes: Uint8Array) => {
  const response = await fetch(`http://127.0.0.1:${server.http.port}/v2/models/${model}/infer`, {
    method: "POST",
    headers: { "inference-header-content-length": "0", connection: "close" },
    body: new Uint8Array(bytes),
  })
  const text = await response.text()
  return { status: response.status, tag: response.headers.get("nereid-error"), text }
}

const plain = (background: Color, size: { width: number; height: number } = { width: 30, height: 20 }) =>
  sharp({ create: { ...size, channels: 4, background } })

describe("preprocess", () => {
  const preprocess = async (picture: Sharp) => {
    await using model = await Client.connect(Preprocess, { url: `grpc://127.0.0.1:${server.grpc.port}` })
    const { PIXELS } = await model.infer({ IMAGE: await picture.toBuffer() })
    expect(PIXELS.shape).toEqual([224, 224, 3])
    return PIXELS.data
  }
  const at = (pixels: Float32Array, x: number, y: number) =>
    [0, 1, 2].map((channel) => pixels[(y * 224 + x) * 3 + channel])

  test.each([
    ["black", [-1, -1, -1]],
    ["white", [1, 1, 1]],
    // JPEG makes 254 of the 255 in a pure red.
    ["#f00", [Math.fround(254 / 127.5 - 1), -1, -1]],
  ])("%s, as JPEG, is %j everywhere", async (background, expected) => {
    const pixels = await preprocess(plain(background).flatten().jpeg())
    expect([0, 1, 2].map((channel) => [...new Set(pixels.filter((_, index) => index % 3 === channel))])).toEqual(
      expected.map((value) => [value]),
    )
  })

  it("stretches, and keeps rows, columns and colours where they are", async () => {
    const blue = await plain("#00f", { width: 100, height: 30 }).png().toBuffer()
    const picture = plain("#0f0", { width: 200, height: 60 }).composite([{ input: blue, left: 100, top: 0 }])
    const pixels = await preprocess(picture.png())
    expect(at(pixels, 10, 10)).toEqual([-1, 1, -1])
    expect(at(pixels, 213, 10)).toEqual([-1, -1, 1])
    expect(at(pixels, 213, 213)).toEqual([-1, 1, -1])
    expect(at(pixels, 100, 10)).toEqual([-1, 1, -1])
    expect(at(pixels, 124, 100)).toEqual([-1, -1, 1])
  })

  it("rotates a photograph upright by its orientation tag", async () => {
    const right = await plain("white", { width: 20, height: 40 }).png().toBuffer()
    const lying = plain("black", { width: 40, height: 40 }).composite([{ input: right, left: 20, top: 0 }])
    const pixels = await preprocess(lying.flatten().jpeg().withMetadata({ orientation: 6 }))
    expect(at(pixels, 100, 10)[0]).toBeLessThan(-0.95)
    expect(at(pixels, 100, 213)[0]).toBeGreaterThan(0.95)
  })

  it("puts what is transparent on white, and gives a grey picture three channels, of 16 bits or 8", async () => {
    expect(at(await preprocess(plain({ r: 0, g: 0, b: 0, alpha: 0 }).png()), 5, 5)).toEqual([1, 1, 1])
    const grey = sharp({ create: { width: 9, height: 9, channels: 3, background: "#808080" } })
    const expected = Array.from({ length: 3 }, () => Math.fround(128 / 127.5 - 1))
    expect(at(await preprocess(grey.clone().toColourspace("b-w").png()), 5, 5)).toEqual(expected)
    expect(at(await preprocess(grey.clone().toColourspace("rgb16").png()), 5, 5)).toEqual(expected)
  })
})

describe("photographed_digit", () => {
  test.each(["grpc", "http"] as const)("reads every photograph, all at once, over %s", async (transport) => {
    const url = `${transport}://127.0.0.1:${server[transport].port}`
    await using model = await Client.connect(PhotographedDigit, { url })
    const responses = await Promise.all(names.map((name) => model.infer({ IMAGE: photograph(name) })))
    expect(responses.map(({ DIGIT }) => DIGIT)).toEqual(names.map((name) => Number(name[0])))
    for (const { PROBABILITY } of responses) expect(PROBABILITY).toBeGreaterThan(0.5)
  })

  it("reads a photograph that is larger, or brighter, or a PNG, or blurred", async () => {
    await using model = await Client.connect(PhotographedDigit, { url: `grpc://127.0.0.1:${server.grpc.port}` })
    const seven = sharp(photograph("7-9000.jpg"))
    for (const changed of [
      seven.clone().resize(1600).jpeg(),
      seven.clone().resize(160).png(),
      seven.clone().linear(1.3, 0).jpeg({ progressive: true }),
      seven.clone().blur(3).png(),
      seven.clone().grayscale().png(),
    ]) {
      expect((await model.infer({ IMAGE: await changed.toBuffer() })).DIGIT).toBe(7)
    }
  })

  it("refuses a blank paper, also under a shadow", async () => {
    const shadow = await plain({ r: 0, g: 0, b: 0, alpha: 0.4 }, { width: 200, height: 100 }).png().toBuffer()
    const paper = plain("#eee", { width: 400, height: 300 })
    const shaded = paper
      .clone()
      .composite([{ input: shadow, left: 0, top: 0 }])
      .blur(8)
    for (const blank of [paper, shaded]) {
      const { status, tag, text } = await post("photographed_digit", await blank.flatten().jpeg().toBuffer())
      expect({ status, tag }).toEqual({ status: 400, tag: "InvalidRequest" })
      expect(text).toContain("the picture shows nothing dark on lighter paper")
    }
  })
})

describe("an input that is not a picture", () => {
  /** A PNG file whose header says that it is larger than it is. */
  const claiming = async (width: number, height: number) => {
    const png = await plain("white").png().toBuffer()
    png.writeUInt32BE(width, 16)
    png.writeUInt32BE(height, 20)
    png.writeUInt32BE(crc32(png.subarray(12, 29)), 29)
    return png
  }

  const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"/>'
  const cases: ReadonlyArray<readonly [string, () => Promise<Uint8Array>, string]> = [
    ["nothing", async () => new Uint8Array(0), "expected the bytes of a JPEG or PNG file, got 0 bytes of another kind"],
    ["text", async () => Buffer.from("text"), "expected the bytes of a JPEG or PNG file, got 4 bytes of another kind"],
    ["an SVG file", async () => Buffer.from(svg), "bytes of another kind"],
    ["a GIF file", () => plain("white").gif().toBuffer(), "bytes of another kind"],
    ["a WebP file", () => plain("white").webp().toBuffer(), "bytes of another kind"],
    ["a JPEG that is cut off", async () => photograph("7-9000.jpg").subarray(0, 9000), "cannot be decoded"],
    ["a PNG that is cut off", async () => (await plain("red").png().toBuffer()).subarray(0, 60), "cannot be decoded"],
    ["the beginning of a JPEG", async () => Uint8Array.of(0xff, 0xd8, 0xff), "cannot be decoded"],
    ["a JPEG's beginning before an SVG", async () => Buffer.from(`\xff\xd8\xff${svg}`, "latin1"), "cannot be decoded"],
    ["a picture of 900 megapixels", () => claiming(30_000, 30_000), "has more than 25000000 pixels"],
    ["a picture without pixels", () => claiming(0, 0), "cannot be decoded"],
  ]

  describe.each(["preprocess", "photographed_digit"])("%s", (model) => {
    test.each(cases)("%s is an InvalidRequest with the reason", async (_, make, expected) => {
      const { status, tag, text } = await post(model, await make())
      expect({ status, tag }).toEqual({ status: 400, tag: "InvalidRequest" })
      expect(text).toContain(expected)
    })
  })

  it("fails alone in its batch", async () => {
    const [good, bad, alsoGood] = await Promise.all([
      post("preprocess", photograph("1-9002.jpg")),
      post("preprocess", Buffer.from("text")),
      post("preprocess", photograph("2-9006.jpg")),
    ])
    expect([good.status, bad.status, alsoGood.status]).toEqual([200, 400, 200])
  })

  it("is refused by a typed client before it is sent", async () => {
    await using model = await Client.connect(Preprocess, { url: "grpc://127.0.0.1:1" })
    await expect(model.infer({ IMAGE: Buffer.from("text") })).rejects.toMatchObject({ _tag: "InvalidRequest" })
  })

  it("a file with any changed bytes gets a response or an InvalidRequest", async () => {
    const random = Random.make(1)
    const files = [photograph("3-9007.jpg"), await plain("red").png().toBuffer()]
    for (let attempt = 0; attempt < 60; attempt++) {
      const changed = Buffer.from(files[attempt % files.length]!)
      for (let change = 0; change < 1 + (attempt % 7); change++) {
        changed[3 + Math.floor(random.next() * (changed.length - 3))] = Math.floor(random.next() * 256)
      }
      const { status, tag, text } = await post("photographed_digit", changed)
      if (status !== 200) expect({ status, tag }, text).toEqual({ status: 400, tag: "InvalidRequest" })
    }
  })
})

test.skipIf(!existsSync(ultraFaceFile) || !existsSync(facePicture))(
  "the face of a photograph is found, where the network and the photograph are at hand",
  async () => {
    const layer = FacesLive.pipe(Layer.provide(Onnx.layer(UltraFace, { file: ultraFaceFile })))
    await using server = await Server.start([Faces], layer, free)
    await using model = await Client.connect(Faces, { url: `grpc://127.0.0.1:${server.grpc.port}` })

    const { BOXES, SCORES } = await model.infer({ IMAGE: readFileSync(facePicture) })
    expect(BOXES.shape).toEqual([1, 4])
    expect(SCORES.data[0]).toBeGreaterThan(0.95)
    for (const [index, expected] of [0.319, 0.077, 0.411, 0.185].entries()) {
      expect(BOXES.data[index]).toBeCloseTo(expected, 2)
    }

    const none = await model.infer({ IMAGE: readFileSync(join(shared, "images/goldfish.jpg")) })
    expect([none.BOXES.shape, none.SCORES.shape]).toEqual([[0, 4], [0]])
  },
)
