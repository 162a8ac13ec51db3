/** Drawings as grey pictures: made smaller, and centred as the digits of MNIST are. */

export interface Grey {
  readonly width: number
  readonly height: number
  /** 0 is paper and 255 is ink, by rows. */
  readonly data: ArrayLike<number>
}

interface Box {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

/** Makes a picture of another size, as averages of the areas. */
export const resized = (picture: Grey, width: number, height: number): Grey =>
  place(picture, { left: 0, top: 0, width: picture.width, height: picture.height }, width, height, {
    left: 0,
    top: 0,
    width,
    height,
  })

/**
 * Centres a drawing as MNIST does, for 28 by 28 pixels: the ink fills 20 of them, and its centre of mass is in the
 * middle. http://yann.lecun.com/exdb/mnist/
 */
export const centred = (picture: Grey, width: number, height: number): Grey => {
  const ink = inkOf(picture)
  if (ink === undefined) return resized(picture, width, height)
  const scale = Math.min((width * 20) / 28 / ink.width, (height * 20) / 28 / ink.height)
  const size = { width: ink.width * scale, height: ink.height * scale }
  const middle = place(picture, ink, width, height, {
    left: (width - size.width) / 2,
    top: (height - size.height) / 2,
    ...size,
  })
  const [x, y] = centre(middle)
  return shifted(middle, Math.round(width / 2 - x), Math.round(height / 2 - y))
}

/** The smallest box around all ink; undefined if there is none. */
const inkOf = ({ width, height, data }: Grey): Box | undefined => {
  let [left, top, right, bottom] = [width, height, -1, -1]
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      if ((data[y * width + x] ?? 0) < 8) continue
      left = Math.min(left, x)
      right = Math.max(right, x)
      top = Math.min(top, y)
      bottom = Math.max(bottom, y)
    }
  }
  return right < 0 ? undefined : { left, top, width: right - left + 1, height: bottom - top + 1 }
}

/** Draws a part of a picture into a box of a new one. */
const place = (picture: Grey, from: Box, width: number, height: number, to: Box): Grey => {
  const data = new Float64Array(width * height)
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const left = from.left + ((x - to.left) / to.width) * from.width
      const top = from.top + ((y - to.top) / to.height) * from.height
      data[y * width + x] = average(picture, from, {
        left,
        top,
        width: from.width / to.width,
        height: from.height / to.height,
      })
    }
  }
  return { width, height, data }
}

/** The average of an area; what is outside of `within` is paper. */
const average = ({ width, data }: Grey, within: Box, area: Box): number => {
  const bottom = Math.min(area.top + area.height, within.top + within.height)
  const right = Math.min(area.left + area.width, within.left + within.width)
  let sum = 0
  for (let y = Math.floor(Math.max(area.top, within.top)); y < bottom; y++) {
    const tall = Math.min(bottom, y + 1) - Math.max(area.top, within.top, y)
    for (let x = Math.floor(Math.max(area.left, within.left)); x < right; x++) {
      const wide = Math.min(right, x + 1) - Math.max(area.left, within.left, x)
      sum += (data[y * width + x] ?? 0) * tall * wide
    }
  }
  return sum / (area.width * area.height)
}

const centre = ({ width, height, data }: Grey): readonly [number, number] => {
  let [mass, x, y] = [0, 0, 0]
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const ink = data[row * width + column] ?? 0
      mass += ink
      x += ink * (column + 0.5)
      y += ink * (row + 0.5)
    }
  }
  return mass === 0 ? [width / 2, height / 2] : [x / mass, y / mass]
}

const shifted = ({ width, height, data }: Grey, right: number, down: number): Grey => {
  const moved = new Float64Array(data.length)
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const [fromX, fromY] = [x - right, y - down]
      if (fromX < 0 || fromX >= width || fromY < 0 || fromY >= height) continue
      moved[y * width + x] = data[fromY * width + fromX] ?? 0
    }
  }
  return { width, height, data: moved }
}

/** Red, green, blue and alpha, for a canvas or PictureLayout.ts. */
export const toRgba = ({ width, height, data }: Grey): Uint8ClampedArray<ArrayBuffer> => {
  const pixels = new Uint8ClampedArray(4 * width * height)
  for (let pixel = 0; pixel < width * height; pixel++) {
    pixels.fill(data[pixel] ?? 0, 4 * pixel, 4 * pixel + 3)
    pixels[4 * pixel + 3] = 255
  }
  return pixels
}
