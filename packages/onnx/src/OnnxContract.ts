/** Contract of an .onnx file. A graph has dynamic dimensions but no batch size, so the contract has no batching. */
import type { Contract, ContractTensor } from "@nereid/core/internal/contract/Contract"
import type { FileSignature, FileTensor } from "./OnnxFile.ts"

export const make = (name: string, { inputs, outputs }: FileSignature): Contract => ({
  name,
  inputs: inputs.map(tensor),
  outputs: outputs.map(tensor),
  maxBatchSize: undefined,
})

const tensor = ({ name, datatype, type, dims }: FileTensor): ContractTensor => ({
  name,
  datatype: datatype ?? type,
  dims,
  optional: false,
})
