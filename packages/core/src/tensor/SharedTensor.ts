/** Tensors whose bytes are in shared memory. They are read when `bytes` is used for the first time. */
import type { DataType } from "./DataType.ts"
import * as SharedBytes from "./SharedBytes.ts"
import { type Shape, TypedTensor } from "./TypedTensor.ts"

const none = new Uint8Array()

export const make = (datatype: DataType, shape: Shape, shared: SharedBytes.SharedBytes): TypedTensor => {
  const tensor = new TypedTensor(datatype, shape, none)
  let bytes: Uint8Array | undefined
  Object.defineProperty(tensor, "bytes", { enumerable: true, get: () => (bytes ??= shared.read()) })
  SharedBytes.set(tensor, shared)
  return tensor
}
