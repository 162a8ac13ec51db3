/**
 * Flatten layer: [channels, side, side] → [channels · side · side]. The values of one picture are already flat; only
 * the ONNX graph needs the operator.
 */
import type { Layer } from "./Layer.ts"

export const flatten = (): Layer => ({
  operator: "Flatten",
  attributes: { axis: 1 },
  parameters: [],
  forward: (input) => input,
  backward: (gradient) => gradient,
})
