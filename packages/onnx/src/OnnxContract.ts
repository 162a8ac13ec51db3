/** The contract of an .onnx file, as far as it tells: nothing of batches, of which a graph knows only dimensions that vary. */
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
