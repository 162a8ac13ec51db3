/**
 * Compares a contract with the one found at its source, and reports all differences, each with the tensor, the declared
 * value and the found value. There are two relations: `callable` checks whether calls by the contract succeed, and
 * `same` whether the source would generate this contract.
 *
 * A contract may be more precise than its source: it may name dimensions and, for `callable`, fix extents that vary at
 * the source, as every reply is checked against the contract. It must not permit requests that the source would reject.
 */
import { Data } from "effect"
import { type Dim, isDynamic, print as printTensor } from "../tensor/TensorSpec.ts"
import type { Contract, ContractTensor } from "./Contract.ts"

/** One difference between a contract and the model that a server runs. */
export interface Difference {
  readonly of: "input" | "output" | "model"
  /** Of the tensor, or of the model. */
  readonly name: string
  /**
   * `missing`: declared, not found. `undeclared`: found, but not declared. `batching`: one has a batch dimension, or
   * batches of more rows. `optional`: one lets requests leave it out.
   */
  readonly kind: "missing" | "undeclared" | "datatype" | "dims" | "batching" | "optional" | "labels"
  /** As messages print it; undefined for nothing. */
  readonly declared: string | undefined
  readonly found: string | undefined
}

/** The declared contract differs from the served one. `message` and `differences` have all differences. */
export class ContractMismatch extends Data.TaggedError("ContractMismatch")<{
  readonly model: string
  readonly differences: ReadonlyArray<Difference>
  readonly message: string
}> {}

export const print = ({ of, name, kind, declared, found }: Difference): string => {
  const subject = `${of} '${name}'`
  switch (kind) {
    case "missing":
      return `${subject}: declared ${declared}, but not found`
    case "undeclared":
      return `${subject}: not declared, but found ${found}`
    default:
      return `${subject}: declared ${declared}, found ${found}`
  }
}

export const compare = (
  declared: Contract,
  found: Contract,
  relation: "callable" | "same",
): ReadonlyArray<Difference> => [
  ...batching(declared, found, relation),
  ...tensors("input", declared, found, relation),
  ...tensors("output", declared, found, relation),
]

const batching = (
  { name, maxBatchSize: declared = 0 }: Contract,
  { maxBatchSize: found }: Contract,
  relation: "callable" | "same",
): ReadonlyArray<Difference> => {
  if (found === undefined || declared === found) return []
  const fits = relation === "callable" && declared > 0 && declared < found
  return fits ? [] : [{ of: "model", name, kind: "batching", declared: rows(declared), found: rows(found) }]
}

const rows = (maxBatchSize: number): string =>
  maxBatchSize === 0 ? "no batches" : `batches of up to ${maxBatchSize} rows`

const tensors = (
  of: "input" | "output",
  declared: Contract,
  found: Contract,
  relation: "callable" | "same",
): ReadonlyArray<Difference> => {
  const [declaredTensors, foundTensors] =
    of === "input" ? [declared.inputs, found.inputs] : [declared.outputs, found.outputs]
  // If batching at the source is unknown, its tensors include the batch dimension.
  const isWhole = found.maxBatchSize === undefined && (declared.maxBatchSize ?? 0) > 0
  const comparable = declaredTensors.map((tensor) =>
    isWhole && tensor.dims ? { ...tensor, dims: [-1, ...tensor.dims] } : tensor,
  )
  const changed = comparable.flatMap((tensor): ReadonlyArray<Difference> => {
    const other = foundTensors.find(({ name }) => name === tensor.name)
    if (other === undefined) {
      return [{ of, name: tensor.name, kind: "missing", declared: text(tensor), found: undefined }]
    }
    return differences(of, tensor, other, relation)
  })
  const others = foundTensors.filter(({ name }) => !declaredTensors.some((tensor) => tensor.name === name))
  const needed = relation === "same" ? others : others.filter(({ optional }) => of === "input" && optional !== true)
  return [
    ...changed,
    ...needed.map((tensor): Difference => ({
      of,
      name: tensor.name,
      kind: "undeclared",
      declared: undefined,
      found: text(tensor),
    })),
  ]
}

const differences = (
  of: "input" | "output",
  declared: ContractTensor,
  found: ContractTensor,
  relation: "callable" | "same",
): ReadonlyArray<Difference> => {
  const { name } = declared
  const all: Array<Difference> = []
  const add = (kind: Difference["kind"], declaredText: string, foundText: string) =>
    all.push({ of, name, kind, declared: declaredText, found: foundText })
  if (declared.datatype !== found.datatype) add("datatype", text(declared), text(found))
  else if (!sameShape(of, declared.dims, found.dims, relation)) add("dims", text(declared), text(found))
  const [isDeclaredOptional, isFoundOptional] = [declared.optional === true, found.optional]
  // An input with a default is always sent, so the source may require it.
  const isPreset = isDeclaredOptional && declared.default !== undefined
  const isRefused =
    isFoundOptional !== undefined &&
    isDeclaredOptional !== isFoundOptional &&
    !isPreset &&
    (relation === "same" || isDeclaredOptional)
  if (of === "input" && isRefused) add("optional", word(isDeclaredOptional), word(isFoundOptional))
  const [labels, others] = [list(declared.labels), list(found.labels)]
  if (labels !== undefined && others !== undefined && labels !== others) add("labels", labels, others)
  return all
}

const word = (isOptional: boolean): string => (isOptional ? "optional" : "required")

const list = (labels: ReadonlyArray<string> | undefined): string | undefined =>
  labels === undefined || labels.length === 0 ? undefined : `labels ${JSON.stringify(labels)}`

const sameShape = (
  of: "input" | "output",
  declared: ReadonlyArray<Dim> | undefined,
  found: ReadonlyArray<Dim> | undefined,
  relation: "callable" | "same",
): boolean => {
  if (declared === undefined || found === undefined) return true
  const fits = relation === "same" ? isSame : of === "input" ? isSent : isRead
  return declared.length === found.length && declared.every((dim, axis) => fits(dim, found[axis] ?? -1))
}

/** Names are compared where both have one. */
const isSame = (declared: Dim, found: Dim): boolean => {
  if (typeof declared === "string" && typeof found === "string") return declared === found
  return declared === found || (isDynamic(declared) && isDynamic(found))
}

const isSent = (declared: Dim, found: Dim): boolean => isDynamic(found) || declared === found

const isRead = (declared: Dim, found: Dim): boolean => isDynamic(declared) || isDynamic(found) || declared === found

const text = ({ datatype, dims }: ContractTensor): string =>
  dims === undefined ? datatype : printTensor(datatype, dims)
