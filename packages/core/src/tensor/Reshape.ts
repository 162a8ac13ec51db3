/**
 * Tensors of one signature in the shapes of another, which differs in dims alone: a configuration's `reshape`. Pure;
 * the bytes are shared.
 */
import { type Dim, isDynamic, type Signature, type TensorSpec } from "./TensorSpec.ts"
import { TypedTensor } from "./TypedTensor.ts"

/** Changes the shape of the tensor at this position of its side of the signature. */
export type Reshape = (tensor: TypedTensor, position: number) => TypedTensor

export interface Reshapes {
  /** From the outer to the inner shapes. */
  readonly inputs: Reshape
  /** From the inner to the outer shapes. */
  readonly outputs: Reshape
}

/** `outer`: what clients see; `inner`: what the model has. `batching`: whether axis 0 is the batch dimension. */
export const make = (outer: Signature, inner: Signature, batching: boolean): Reshapes =>
  outer === inner
    ? unchanged
    : {
        inputs: reshape(outer.inputs, inner.inputs, batching ? 1 : 0),
        outputs: reshape(inner.outputs, outer.outputs, batching ? 1 : 0),
      }

const unchanged: Reshapes = { inputs: (tensor) => tensor, outputs: (tensor) => tensor }

const reshape = (from: ReadonlyArray<TensorSpec>, to: ReadonlyArray<TensorSpec>, leading: number): Reshape => {
  const shapes = from.map(({ dims }, position) => {
    const target = to[position]?.dims ?? dims
    return target === dims ? undefined : shapeOf(dims, target, leading)
  })
  return (tensor, position) => {
    const shape = shapes[position]
    return shape === undefined ? tensor : new TypedTensor(tensor.datatype, shape(tensor.shape), tensor.bytes)
  }
}

/** From a shape with dims `from` to the one with dims `to`; variable extents keep their order. */
const shapeOf = (from: ReadonlyArray<Dim>, to: ReadonlyArray<Dim>, leading: number) => {
  const variable = from.flatMap((dim, axis) => (isDynamic(dim) ? [axis + leading] : []))
  return (shape: ReadonlyArray<number>): ReadonlyArray<number> => {
    const extents = variable.map((axis) => shape[axis] ?? 1).values()
    return [
      ...shape.slice(0, leading),
      ...to.map((dim) => (typeof dim === "number" && dim !== -1 ? dim : (extents.next().value ?? 1))),
    ]
  }
}
