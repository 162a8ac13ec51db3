/**
 * ONNX Runtime's tensors from v2 datatypes and bytes, and back. For the worker: Effect-free.
 */
import type { DataType, FixedDataType } from "@nereid/core/internal/tensor/DataType"
import { view } from "@nereid/core/internal/tensor/DataType"
import { Tensor } from "onnxruntime-node"
import type { TensorMessage } from "./SessionProtocol.ts"

/** ONNX Runtime's names; it has no tensors of BF16 here. */
const types = {
  BOOL: "bool",
  UINT8: "uint8",
  UINT16: "uint16",
  UINT32: "uint32",
  UINT64: "uint64",
  INT8: "int8",
  INT16: "int16",
  INT32: "int32",
  INT64: "int64",
  FP16: "float16",
  FP32: "float32",
  FP64: "float64",
} as const

// onnxruntime-common wraps FP16 in Float16Array where there is one, whose length the native part of 1.30 does not know:
// "not enough space: expected 16, got 0". It looks for the class at the first tensor, so this thread must not have it.
Reflect.deleteProperty(globalThis, "Float16Array")

/** A tensor on this memory, without a copy: the runtime reads and writes it in place. */
export const onMemory = (
  datatype: FixedDataType,
  dims: ReadonlyArray<number>,
  memory: ArrayBufferLike,
  byteOffset: number,
): Tensor => {
  const length = dims.reduce((count, extent) => count * extent, 1)
  if (datatype === "BF16") throw new TypeError("onnxruntime-node has no BF16 tensors")
  const data =
    datatype === "FP16" ? new Uint16Array(memory, byteOffset, length) : view(datatype, memory, byteOffset, length)
  // The table and `view` agree on the class of each datatype; the overloads of Tensor cannot see that.
  return new Tensor(types[datatype] as "float32", data as Float32Array, [...dims])
}

export const fromMessage = (datatype: DataType, { dims, data }: TensorMessage): Tensor => {
  if (data instanceof Uint8Array) {
    if (datatype === "BYTES") throw new TypeError("a BYTES tensor comes as texts. This is a bug.")
    return onMemory(datatype, dims, data.buffer, data.byteOffset)
  }
  return new Tensor("string", [...data], [...dims])
}

/** Copied: the runtime's own memory cannot be handed to another thread. */
export const toMessage = (tensor: Tensor): TensorMessage => ({
  dims: [...tensor.dims],
  data: bytes(tensor)?.slice() ?? (tensor.data as string[]),
})

/** The bytes of the elements, without a copy; undefined for strings. */
export const bytes = ({ data }: Tensor): Uint8Array | undefined =>
  ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : undefined
