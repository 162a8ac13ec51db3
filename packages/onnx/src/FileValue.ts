/** The value of a constant of an .onnx file, as a tensor; of those that are in the file itself. */
import { byteWidth, type DataType } from "@nereid/core/internal/tensor/DataType"
import { elementCount, encodeElements, TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import { type TensorProto, TensorProto_DataLocation as Location } from "@nereid/protocol/onnx"

/** Undefined where it lies in another file, or is not what its dims say. */
export const tensor = (constant: TensorProto, datatype: DataType): TypedTensor | undefined => {
  if (constant.dataLocation === Location.EXTERNAL) return undefined
  const shape = constant.dims.map(Number)
  const bytes = datatype === "BYTES" ? encodeElements(constant.stringData) : fixed(constant, datatype)
  const count = datatype === "BYTES" ? constant.stringData.length : bytes.length / (byteWidth(datatype) ?? 1)
  return count === elementCount(shape) ? new TypedTensor(datatype, shape, bytes) : undefined
}

/** Reads the value from raw bytes, or from the ONNX field of its element type. */
const fixed = (constant: TensorProto, datatype: Exclude<DataType, "BYTES">): Uint8Array => {
  if (constant.rawData.length > 0) return constant.rawData.slice()
  const { buffer } = elements(constant, datatype)
  return new Uint8Array(buffer)
}

const elements = (
  { floatData, doubleData, int32Data, int64Data, uint64Data }: TensorProto,
  datatype: Exclude<DataType, "BYTES">,
) => {
  switch (datatype) {
    case "FP32":
      return Float32Array.from(floatData)
    case "FP64":
      return Float64Array.from(doubleData)
    case "INT64":
      return BigInt64Array.from(int64Data)
    case "UINT64":
      return BigUint64Array.from(uint64Data)
    case "UINT32":
      return Uint32Array.from(uint64Data, Number)
    case "INT32":
      return Int32Array.from(int32Data)
    case "INT16":
    case "UINT16":
    // Halves stand there as their bits.
    case "FP16":
    case "BF16":
      return Uint16Array.from(int32Data)
    case "INT8":
    case "UINT8":
    case "BOOL":
      return Uint8Array.from(int32Data)
  }
}
