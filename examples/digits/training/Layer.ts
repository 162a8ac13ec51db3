/**
 * Interface of a network layer for one picture at a time: forward pass, gradient, and ONNX operator. Layers have fixed
 * sizes and own their buffers.
 */
export interface Layer {
  /** The ONNX operator, whose inputs are the layer's input and then its parameters in order. */
  readonly operator: "Conv" | "Relu" | "MaxPool" | "Flatten" | "Gemm"
  readonly attributes: Readonly<Record<string, number | ReadonlyArray<number>>>
  readonly parameters: ReadonlyArray<Parameter>
  /** The result is the layer's own buffer, valid until the next call. */
  readonly forward: (input: Float32Array) => Float32Array
  /** Takes dLoss/dOutput of the last `forward`, adds to the parameters' gradients and returns dLoss/dInput. */
  readonly backward: (gradient: Float32Array) => Float32Array
}

export interface Parameter {
  readonly name: string
  readonly shape: ReadonlyArray<number>
  readonly values: Float32Array
  /** Summed over the pictures of a batch; the optimiser sets it back to zero. */
  readonly gradient: Float32Array
}

export const parameter = (name: string, shape: ReadonlyArray<number>, value: () => number): Parameter => {
  const size = shape.reduce((product, dimension) => product * dimension, 1)
  return { name, shape, values: Float32Array.from({ length: size }, value), gradient: new Float32Array(size) }
}
