/**
 * Decodes JPEG and PNG pictures with sharp, outside the event loop, and converts their pixels to tensors. An invalid
 * picture fails with InvalidRequest.
 */
import { Errors, Tensor } from "@nereid/core"
import type { TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import { Effect } from "effect"
import sharp, { type Sharp } from "sharp"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

/** Maximum pixels of a picture. Photographs of 24 megapixels are allowed; decompression bombs are not. */
const maxPixels = 25_000_000

/** Maximum time to decode a picture, in seconds. */
const maxSeconds = 10

/** Pixels of a picture by rows, one byte per channel: 0 is dark and 255 is bright. */
export interface Pixels<W extends number = number, H extends number = number, C extends 1 | 3 = 1 | 3> {
  readonly data: Uint8Array
  readonly width: W
  readonly height: H
  /** Number of channels. 3: red, green, blue; 1: grey. */
  readonly channels: C
}

/** Decodes a picture to RGB, upright, with transparency on white, stretched to exactly this size. */
export const colours = <const W extends number, const H extends number>(
  picture: Uint8Array,
  { width, height }: { readonly width: W; readonly height: H },
): Effect.Effect<Pixels<W, H, 3>, Errors.InvalidRequest> =>
  Effect.map(
    decode(picture, (sharp) => sharp.toColourspace("srgb").resize({ width, height, fit: "fill", ...resampling })),
    ({ data }) => ({ data, width, height, channels: 3 }),
  )

/** Decodes a picture to grey, upright, with transparency on white, downscaled if its longer side exceeds `longest`. */
export const greys = (
  picture: Uint8Array,
  { longest }: { readonly longest: number },
): Effect.Effect<Pixels<number, number, 1>, Errors.InvalidRequest> =>
  Effect.map(
    decode(picture, (sharp) =>
      sharp
        .toColourspace("b-w")
        .resize({ width: longest, height: longest, fit: "inside", withoutEnlargement: true, ...resampling }),
    ),
    ({ data, width, height }) => ({ data, width, height, channels: 1 }),
  )

/** Resampling like Pillow's, so that a network sees pictures like those of its training. */
const resampling = { kernel: "cubic", fastShrinkOnLoad: false } as const

let isConfigured = false

/**
 * Configures sharp before the first picture is decoded. Importing does not, because the settings are global to the
 * process.
 */
const configure = (): void => {
  if (isConfigured) return
  isConfigured = true
  // libvips supports dozens of formats, some with external programs. Only the formats listed here are enabled.
  sharp.block({ operation: ["VipsForeignLoad"] })
  sharp.unblock({ operation: ["VipsForeignLoadJpegBuffer", "VipsForeignLoadPngBuffer"] })
  // Requests rarely repeat a picture.
  sharp.cache(false)
}

const decode = (picture: Uint8Array, arrange: (picture: Sharp) => Sharp) =>
  Effect.tryPromise({
    try: async () => {
      configure()
      const upright = sharp(picture, { failOn: "truncated", limitInputPixels: maxPixels })
        .autoOrient()
        .flatten({ background: "white" })
        .timeout({ seconds: maxSeconds })
      const { data, info } = await arrange(upright).raw().toBuffer({ resolveWithObject: true })
      return { data, width: info.width, height: info.height }
    },
    catch: (error) => new Errors.InvalidRequest({ message: `the picture cannot be decoded: ${reason(error)}` }),
  })

/** Returns the first line of the error; libvips repeats itself. */
const reason = (error: unknown): string => {
  const [line = ""] = errorMessage(error).trim().split("\n")
  return line.includes("pixel limit") ? `it has more than ${maxPixels} pixels` : line
}

/** Normalization of a byte: `(byte - mean) / deviation`, with one value for all channels or one for each. */
export interface Normalization {
  /** Mean of the bytes. Default 127.5: with the default deviation, -1 is dark and 1 is bright. */
  readonly mean?: number | ReadonlyArray<number>
  /** Deviation of the bytes. Default 127.5. */
  readonly deviation?: number | ReadonlyArray<number>
}

/** Converts to FP32 [height, width, channels], the order of TensorFlow. */
export const channelsLast = <W extends number, H extends number, C extends 1 | 3>(
  { data, width, height, channels }: Pixels<W, H, C>,
  normalization: Normalization = {},
): TypedTensor<"FP32", readonly [H, W, C]> => {
  const values = new Float32Array(data.length)
  for (let channel = 0; channel < channels; channel++) {
    const table = normalized(normalization, channel)
    for (let index = channel; index < data.length; index += channels) values[index] = table[data[index] ?? 0] ?? 0
  }
  return Tensor.make("FP32", [height, width, channels], values)
}

/** Converts to FP32 [channels, height, width], the order of PyTorch. */
export const channelsFirst = <W extends number, H extends number, C extends 1 | 3>(
  { data, width, height, channels }: Pixels<W, H, C>,
  normalization: Normalization = {},
): TypedTensor<"FP32", readonly [C, H, W]> => {
  const values = new Float32Array(data.length)
  let place = 0
  for (let channel = 0; channel < channels; channel++) {
    const table = normalized(normalization, channel)
    for (let index = channel; index < data.length; index += channels) values[place++] = table[data[index] ?? 0] ?? 0
  }
  return Tensor.make("FP32", [channels, height, width], values)
}

/** Returns the normalized value of each byte, for one channel. */
const normalized = ({ mean = 127.5, deviation = 127.5 }: Normalization, channel: number): Float32Array => {
  const of = (value: number | ReadonlyArray<number>) => (typeof value === "number" ? value : (value[channel] ?? 0))
  return Float32Array.from({ length: 256 }, (_, byte) => (byte - of(mean)) / of(deviation))
}
