/**
 * The vocabulary of tensors, for contracts and handlers. `Tensor.FP32("n")` declares a tensor, `Tensor.make("FP32",
 * [2], data)` makes one, and `Tensor.Tensor<"FP32", readonly [number]>` is its type. Defined in Field.ts,
 * TypedTensor.ts and Elementwise.ts.
 */
export { type Broadcast, map, type NumericDataType, zipWith } from "./tensor/Elementwise.ts"
export {
  BF16,
  BOOL,
  BYTES,
  type Field,
  FP16,
  FP32,
  FP64,
  INT16,
  INT32,
  INT64,
  INT8,
  json,
  labels,
  of,
  optional,
  type Plain,
  scalar,
  UINT16,
  UINT32,
  UINT64,
  UINT8,
  utf8,
  type WithDefault,
} from "./model/Field.ts"
export { fromNested, toNested } from "./tensor/Nested.ts"
export {
  type AnyTensor as Any,
  concat,
  elementCount,
  make,
  reshape,
  slice,
  TypedTensor as Tensor,
  type Shape,
} from "./tensor/TypedTensor.ts"
