/**
 * [channels, side, side] → [channels · side · side]. Nothing to do for one picture, whose values lie flat already, but
 * ONNX needs to be told where the axes end.
 */
import type { Layer } from "./Layer.ts"

export const flatten = (): Layer => ({
  operator: "Flatten",
  attributes: { axis: 1 },
  parameters: [],
  forward: (input) => input,
  backward: (gradient) => gradient,
})
