/**
 * Compares a file's signature with the declaration. Reports all differences at once, each with the tensor's name, the
 * declared value and the file's value.
 */
import { type Dim, isDynamic, print, type Signature, type TensorSpec } from "@nereid/core/internal/tensor/TensorSpec"
import type { FileSignature, FileTensor } from "./OnnxFile.ts"

type Kind = "input" | "output"

/**
 * One line per mismatch; none where the file can be served as declared. Outputs that the file has and the declaration
 * does not are left alone.
 */
export const mismatches = (declared: Signature, maxBatchSize: number, file: FileSignature): ReadonlyArray<string> => [
  ...compare("input", declared.inputs, maxBatchSize, file.inputs),
  ...file.inputs
    .filter(({ name }) => !declared.inputs.some((spec) => spec.name === name))
    .map((tensor) => `input '${tensor.name}': expected no such input, found ${printFound(tensor)}`),
  ...compare("output", declared.outputs, maxBatchSize, file.outputs),
]

const compare = (
  kind: Kind,
  specs: ReadonlyArray<TensorSpec>,
  maxBatchSize: number,
  tensors: ReadonlyArray<FileTensor>,
): ReadonlyArray<string> =>
  specs.flatMap((spec) => {
    const tensor = tensors.find(({ name }) => name === spec.name)
    const expected = maxBatchSize > 0 ? [-1, ...spec.dims] : spec.dims
    const found = tensor === undefined ? `none among ${names(kind, tensors)}` : printFound(tensor)
    const reason = tensor === undefined ? "" : difference(kind, spec, maxBatchSize, tensor)
    return reason === undefined
      ? []
      : [`${kind} '${spec.name}': expected ${print(spec.datatype, expected)}, found ${found}${reason}`]
  })

/** Returns the reason for a mismatch, as an addition to `expected …, found …`; empty if no addition is needed. */
const difference = (kind: Kind, spec: TensorSpec, maxBatchSize: number, tensor: FileTensor): string | undefined => {
  if (spec.datatype !== tensor.datatype) return ""
  if (spec.datatype === "BF16") return ", but onnxruntime-node has no BF16 tensors"
  if (kind === "input" && spec.optional && spec.default === undefined) {
    return ", which the file requires, but the declaration makes optional without a default"
  }
  if (tensor.dims === undefined) return undefined
  if (maxBatchSize === 0) return fits(spec.dims, tensor.dims) ? undefined : ""
  const [batch, ...rest] = tensor.dims
  if (batch === undefined) return `, which has no batch dimension for a maxBatchSize of ${maxBatchSize}`
  if (!fits(spec.dims, rest)) return ""
  if (isDynamic(batch)) return undefined
  return `, whose first dimension is fixed: a maxBatchSize of ${maxBatchSize} needs a dynamic one`
}

/** Same rank; a fixed extent fits the same one and a dynamic one, a dynamic extent fits only a dynamic one. */
const fits = (declared: ReadonlyArray<Dim>, found: ReadonlyArray<Dim>): boolean =>
  declared.length === found.length &&
  declared.every((dim, axis) => {
    const other = found[axis] ?? -1
    return isDynamic(other) || dim === other
  })

const printFound = ({ type, dims }: FileTensor): string => (dims === undefined ? type : print(type, dims))

const names = (kind: Kind, tensors: ReadonlyArray<FileTensor>): string =>
  tensors.length === 0 ? `no ${kind}s` : tensors.map(({ name }) => `'${name}'`).join(", ")
