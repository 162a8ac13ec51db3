/** The form that a tensor has in code if its source does not tell. */
import type { TensorForm } from "../tensor/TensorSpec.ts"
import type { ContractTensor } from "./Contract.ts"

type Shaped = Pick<ContractTensor, "datatype" | "dims" | "labels">

/** One number is a scalar. Texts are not distinguished from bytes, and stay bytes. */
export const guessedForm = (tensor: Shaped): TensorForm => (fits("scalar", tensor) ? "scalar" : "tensor")

/** Whether a tensor can have this form. */
export const fits = (form: TensorForm, { datatype, dims }: Shaped): boolean => {
  if (form === "tensor") return true
  if (dims?.length !== 1 || dims[0] !== 1) return false
  return form === "scalar" ? datatype !== "BYTES" && datatype !== "BF16" : datatype === "BYTES"
}

/** Whether a tensor is one index of a class, which is a label in code. */
export const isLabel = ({ datatype, dims, labels }: Shaped): boolean =>
  labels !== undefined && labels.length > 0 && datatype === "INT32" && dims?.length === 1 && dims[0] === 1
