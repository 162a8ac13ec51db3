/**
 * An instance whose model takes and gives other shapes than its clients: the tensors of a batch are seen in the shapes
 * of the model on the way in, and in those of the signature on the way out. Nothing is copied.
 */
import { Exit, Result } from "effect"
import { type Instance, wrapInstance } from "@nereid/core/internal/instance/Instance"
import { type Dim, isDynamic, type Signature, type TensorSpec } from "@nereid/core/internal/tensor/TensorSpec"
import { TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"

/** `outer`: what clients see; `inner`: what the instance has. In both, tensors stand in the same order. */
export const make = (instance: Instance, outer: Signature, inner: Signature, batching: boolean): Instance => {
  const view = (from: ReadonlyArray<TensorSpec>, to: ReadonlyArray<TensorSpec>) => {
    const reshapes = from.map((spec, index) => reshape(spec.dims, to[index]?.dims ?? spec.dims, batching ? 1 : 0))
    return (tensor: TypedTensor, index: number): TypedTensor =>
      new TypedTensor(tensor.datatype, reshapes[index]?.(tensor.shape) ?? tensor.shape, tensor.bytes)
  }
  const inward = view(outer.inputs, inner.inputs)
  const outward = view(inner.outputs, outer.outputs)
  return wrapInstance(instance, (batch, settle) => {
    const requests = batch.requests.map((request) => ({
      ...request,
      inputs: request.inputs.map((tensor, index) => tensor && inward(tensor, index)),
    }))
    return instance.execute({ ...batch, requests }, (exit) =>
      settle(
        Exit.map(exit, (execution) => ({
          ...execution,
          outcomes: execution.outcomes.map((outcome) =>
            Result.map(outcome, (response) => ({
              ...response,
              outputs: response.outputs.map((tensor, index) => tensor && outward(tensor, index)),
            })),
          ),
        })),
      ),
    )
  })
}

/** From a shape with dims `from` to the one with dims `to`; variable extents keep their order. */
const reshape = (from: ReadonlyArray<Dim>, to: ReadonlyArray<Dim>, leading: number) => {
  const variable = from.flatMap((dim, axis) => (isDynamic(dim) ? [axis + leading] : []))
  return (shape: ReadonlyArray<number>): ReadonlyArray<number> => {
    const extents = variable.map((axis) => shape[axis] ?? 1).values()
    return [
      ...shape.slice(0, leading),
      ...to.map((dim) => (typeof dim === "number" && dim !== -1 ? dim : (extents.next().value ?? 1))),
    ]
  }
}
