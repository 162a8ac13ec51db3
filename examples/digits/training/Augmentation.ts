/**
 * Augments the training digits by random rotation, shear, scale and translation, because there are only 9,000 pictures.
 * The limits keep the label valid: a 6 never becomes a 9.
 */
import type { Random } from "./Random.ts"

const turn = 0.25 // radians
const slant = 0.2
const resize = 0.15
const move = 2.5 // pixels

/**
 * Returns a distorted 28×28 picture (side = 28), sampled bilinearly from `image`. There is no ink outside of the
 * picture.
 */
export const distort = (image: Float32Array, side: number, random: Random): Float32Array => {
  const angle = random.around(turn)
  const shear = random.around(slant)
  const scaleX = 1 + random.around(resize)
  const scaleY = 1 + random.around(resize)
  const middle = (side - 1) / 2
  const middleX = middle + random.around(move)
  const middleY = middle + random.around(move)
  const cosine = Math.cos(angle)
  const sine = Math.sin(angle)

  const inkAt = (x: number, y: number): number => (x < 0 || y < 0 || x >= side || y >= side ? 0 : image[y * side + x]!)

  const result = new Float32Array(side * side)
  for (let row = 0; row < side; row++) {
    for (let column = 0; column < side; column++) {
      const slantedX = (column - middle) * scaleX + (row - middle) * shear
      const slantedY = (row - middle) * scaleY
      const x = middleX + cosine * slantedX - sine * slantedY
      const y = middleY + sine * slantedX + cosine * slantedY
      const left = Math.floor(x)
      const top = Math.floor(y)
      const right = x - left
      const bottom = y - top
      result[row * side + column] =
        (1 - bottom) * ((1 - right) * inkAt(left, top) + right * inkAt(left + 1, top)) +
        bottom * ((1 - right) * inkAt(left, top + 1) + right * inkAt(left + 1, top + 1))
    }
  }
  return result
}
