/** Bounding boxes of a detector, and non-maximum suppression. */
export interface Box {
  readonly left: number
  readonly top: number
  readonly right: number
  readonly bottom: number
  /** Confidence of the detector, 0..1. */
  readonly score: number
}

const area = ({ left, top, right, bottom }: Omit<Box, "score">): number =>
  Math.max(0, right - left) * Math.max(0, bottom - top)

/** The shared area of two boxes, as a share of all that they cover: 1 for the same box, 0 for boxes apart. */
export const overlap = (one: Box, other: Box): number => {
  const shared = area({
    left: Math.max(one.left, other.left),
    top: Math.max(one.top, other.top),
    right: Math.min(one.right, other.right),
    bottom: Math.min(one.bottom, other.bottom),
  })
  const covered = area(one) + area(other) - shared
  return covered === 0 ? 0 : shared / covered
}

/**
 * The surest box of every heap of boxes that overlap by more than `most`, the surest first (non-maximum suppression).
 */
export const surest = (boxes: ReadonlyArray<Box>, limit: number): ReadonlyArray<Box> => {
  const kept: Array<Box> = []
  for (const box of boxes.toSorted((one, other) => other.score - one.score)) {
    if (kept.every((better) => overlap(better, box) <= limit)) kept.push(box)
  }
  return kept
}
