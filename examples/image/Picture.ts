/**
 * A JPEG or PNG picture: as a model's input, and decoded to pixels by sharp, outside the event loop. Whatever is wrong with
 * a picture is an InvalidRequest. What pixels mean to a model is the model's own business.
 */
import { Errors, Tensor } from "@nereid/core"
import { Effect, Schema, SchemaTransformation } from "effect"
import sharp, { type Sharp } from "sharp"

/** Pixels of a picture: a photograph of 24 megapixels is read, one that would unfold to gigabytes is not. */
const mostPixels = 25_000_000

/** A picture that decodes slower than this is made to. */
const mostSeconds = 10

/** One byte per channel, by rows. */
export interface Pixels {
  readonly data: Uint8Array
  readonly width: number
  readonly height: number
}

// libvips reads dozens of formats, some by programs of their own making. What is not listed here is not even looked at.
sharp.block({ operation: ["VipsForeignLoad"] })
sharp.unblock({ operation: ["VipsForeignLoadJpegBuffer", "VipsForeignLoadPngBuffer"] })
// No two requests bring the same picture.
sharp.cache(false)

const beginnings = [Uint8Array.of(0xff, 0xd8, 0xff), Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)]

const isPicture = (bytes: Uint8Array): boolean =>
  beginnings.some((beginning) => beginning.every((byte, index) => bytes[index] === byte))

/** BYTES [1] on the wire: a file's bytes. In code the same, known to begin like a JPEG or PNG file. */
export const field = Tensor.BYTES(1).pipe(
  Schema.decodeTo(
    Schema.Uint8Array,
    SchemaTransformation.transform({
      decode: ({ data: [bytes = new Uint8Array()] }) => bytes,
      encode: (bytes) => Tensor.make("BYTES", [1], [bytes]),
    }),
  ),
  Schema.check(
    Schema.makeFilter(
      (bytes) =>
        isPicture(bytes) || `expected the bytes of a JPEG or PNG file, got ${bytes.length} bytes of another kind`,
    ),
  ),
)

/** Upright and without transparency, in red, green and blue, stretched to exactly this size. */
export const colours = (bytes: Uint8Array, width: number, height: number) =>
  decode(bytes, (picture) => picture.toColourspace("srgb").resize({ width, height, fit: "fill", ...resampling }))

/** Upright and without transparency, in grey, made smaller where it is larger than `longest` in width or height. */
export const greys = (bytes: Uint8Array, longest: number) =>
  decode(bytes, (picture) =>
    picture
      .toColourspace("b-w")
      .resize({ width: longest, height: longest, fit: "inside", withoutEnlargement: true, ...resampling }),
  )

/** As Pillow does it, so that a network sees what it has been trained with. */
const resampling = { kernel: "cubic", fastShrinkOnLoad: false } as const

const decode = (bytes: Uint8Array, arrange: (picture: Sharp) => Sharp): Effect.Effect<Pixels, Errors.InvalidRequest> =>
  Effect.tryPromise({
    try: async () => {
      const picture = sharp(bytes, { failOn: "truncated", limitInputPixels: mostPixels })
        .autoOrient()
        .flatten({ background: "white" })
        .timeout({ seconds: mostSeconds })
      const { data, info } = await arrange(picture).raw().toBuffer({ resolveWithObject: true })
      return { data, width: info.width, height: info.height }
    },
    catch: (error) => new Errors.InvalidRequest({ message: `the picture cannot be decoded: ${reason(error)}` }),
  })

/** The first line: libvips repeats itself. */
const reason = (error: unknown): string => {
  const [line = ""] = (error instanceof Error ? error.message : String(error)).trim().split("\n")
  return line.includes("pixel limit") ? `it has more than ${mostPixels} pixels` : line
}
