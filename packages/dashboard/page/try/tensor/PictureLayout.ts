/** Tensors that are pictures: which axes are rows, columns and colours, and how pixels become numbers. */
import { isNumeric } from "./Datatype.ts"
import { type Dims, isVariable } from "./Shape.ts"
import { ofNumbers, type Tensor } from "./Tensor.ts"

export interface PictureLayout {
  readonly channels: 1 | 3
  /** Undefined if variable. */
  readonly height: number | undefined
  readonly width: number | undefined
  /** Whether colours are the last axis; otherwise each has a plane. */
  readonly isInterleaved: boolean
}

/** Fewer rows or columns are a matrix. */
const least = 8

/** The layout of pictures that a tensor may be; undefined if it is none. */
export const layoutOf = (datatype: string, dims: Dims): PictureLayout | undefined => {
  if (!isNumeric(datatype) || datatype === "BOOL" || datatype === "INT64" || datatype === "UINT64") return undefined
  const inner = dims.length === 4 && dims[0] === 1 ? dims.slice(1) : dims
  const [first, second, third] = inner
  if (inner.length === 2) {
    // Two variable dims without such names are any matrix.
    const isPicture = [first, second].every((dim) => !isVariable(dim) || /^(h|w|height|width)$/i.test(String(dim)))
    return isPicture ? layout(1, first, second, false) : undefined
  }
  if (inner.length !== 3) return undefined
  if (first === 1 || first === 3) return layout(first, second, third, false)
  return third === 1 || third === 3 ? layout(third, first, second, true) : undefined
}

const layout = (
  channels: 1 | 3,
  height: Dims[number] | undefined,
  width: Dims[number] | undefined,
  isInterleaved: boolean,
): PictureLayout | undefined => {
  if ([height, width].some((extent) => typeof extent === "number" && extent >= 0 && extent < least)) return undefined
  return { channels, height: fixed(height), width: fixed(width), isInterleaved }
}

const fixed = (dim: number | string | undefined): number | undefined =>
  typeof dim === "number" && dim >= 0 ? dim : undefined

export type Scale = "unit" | "byte" | "signed" | "imagenet"

export const scales: Readonly<Record<Scale, string>> = {
  unit: "0 to 1",
  byte: "0 to 255",
  signed: "-1 to 1",
  imagenet: "ImageNet's mean and deviation",
}

/** Names of the scales that a datatype can have. */
export const scalesOf = (datatype: string): ReadonlyArray<Scale> => {
  if (datatype.startsWith("FP") || datatype === "BF16") return ["unit", "byte", "signed", "imagenet"]
  return datatype === "INT8" ? ["unit"] : ["byte", "unit"]
}

const mean = [0.485, 0.456, 0.406]
const deviation = [0.229, 0.224, 0.225]

const scaled = (value: number, channel: number, scale: Scale): number => {
  switch (scale) {
    case "unit":
      return value / 255
    case "byte":
      return value
    case "signed":
      return value / 127.5 - 1
    case "imagenet":
      return (value / 255 - (mean[channel] ?? 0)) / (deviation[channel] ?? 1)
  }
}

export interface Pixels {
  readonly width: number
  readonly height: number
  /** Red, green, blue and alpha of each pixel, by rows. */
  readonly data: ArrayLike<number>
}

export interface PictureOptions {
  readonly scale: Scale
  readonly isInverted: boolean
}

/** The tensor of a picture that has the size already. */
export const toTensor = (
  { width, height, data }: Pixels,
  datatype: string,
  dims: Dims,
  { channels, isInterleaved }: PictureLayout,
  { scale, isInverted }: PictureOptions,
): Tensor => {
  const pixels = width * height
  const values = new Float64Array(pixels * channels)
  const isInteger = !datatype.startsWith("FP") && datatype !== "BF16"
  for (let pixel = 0; pixel < pixels; pixel++) {
    for (let channel = 0; channel < channels; channel++) {
      const raw = channels === 1 ? grey(data, 4 * pixel) : (data[4 * pixel + channel] ?? 0)
      const value = scaled(isInverted ? 255 - raw : raw, channel, scale)
      values[isInterleaved ? pixel * channels + channel : channel * pixels + pixel] = isInteger
        ? Math.round(value)
        : value
    }
  }
  const inner =
    dims.length === 2 ? [height, width] : isInterleaved ? [height, width, channels] : [channels, height, width]
  return ofNumbers(datatype, dims.length === 4 ? [1, ...inner] : inner, values)
}

/** Brightness as BT.601 has it. */
const grey = (data: ArrayLike<number>, at: number): number => {
  const [red = 0, green = 0, blue = 0] = [data[at], data[at + 1], data[at + 2]]
  return red === green && green === blue ? red : 0.299 * red + 0.587 * green + 0.114 * blue
}

/** The picture that a tensor is, with the numbers that are black and white. */
export const toPixels = (
  numbers: ArrayLike<number>,
  { channels, isInterleaved }: PictureLayout,
  width: number,
  height: number,
  [least, most]: readonly [number, number],
): Uint8ClampedArray<ArrayBuffer> => {
  const pixels = width * height
  const factor = most > least ? 255 / (most - least) : 0
  const data = new Uint8ClampedArray(4 * pixels)
  for (let pixel = 0; pixel < pixels; pixel++) {
    for (let colour = 0; colour < 3; colour++) {
      const channel = channels === 1 ? 0 : colour
      const at = isInterleaved ? pixel * channels + channel : channel * pixels + pixel
      data[4 * pixel + colour] = ((numbers[at] ?? 0) - least) * factor
    }
    data[4 * pixel + 3] = 255
  }
  return data
}
