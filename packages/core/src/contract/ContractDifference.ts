/**
 * In what a contract is not the one that was found elsewhere: every difference at once, each with the tensor, what was
 * declared and what was found. Two questions are asked so: whether calls by the contract work (`callable`), and whether it
 * is what would be written from the source (`same`).
 *
 * A contract may know more than its source: what a dimension is called, and, to callers, how long one is that the source lets
 * vary, as every reply is held against the contract anyway. It must not let callers send what would be refused.
 */
import { Data } from "effect"
import { type Dim, isDynamic, print as printTensor } from "../tensor/TensorSpec.ts"
import type { Contract, ContractTensor } from "./Contract.ts"

export interface Difference {
  readonly of: "input" | "output" | "model"
  /** Of the tensor, or of the model. */
  readonly name: string
  /**
   * `missing`: declared, not found. `undeclared`: found, but not declared. `batching`: one has a batch dimension, or batches
   * of more rows. `optional`: one lets requests leave it out.
   */
  readonly kind: "missing" | "undeclared" | "datatype" | "dims" | "batching" | "optional" | "labels"
  /** As messages print it; undefined for nothing. */
  readonly declared: string | undefined
  readonly found: string | undefined
}

/** What was declared is not what is served. Every difference is in the message, and in `differences`. */
export class ContractMismatch extends Data.TaggedError("ContractMismatch")<{
  readonly model: string
  readonly differences: ReadonlyArray<Difference>
  readonly message: string
}> {}

export const print = ({ of, name, kind, declared, found }: Difference): string => {
  const subject = `${of} '${name}'`
  switch (kind) {
    case "missing":
      return `${subject}: declared ${declared}, but there is none`
    case "undeclared":
      return `${subject}: not declared, but there is ${found}`
    default:
      return `${subject}: declared ${declared}, found ${found}`
  }
}

export const compare = (
  declared: Contract,
  found: Contract,
  question: "callable" | "same",
): ReadonlyArray<Difference> => [
  ...batching(declared, found, question),
  ...tensors("input", declared, found, question),
  ...tensors("output", declared, found, question),
]

const batching = (
  { name, maxBatchSize: declared = 0 }: Contract,
  { maxBatchSize: found }: Contract,
  question: "callable" | "same",
): ReadonlyArray<Difference> => {
  if (found === undefined || declared === found) return []
  const fits = question === "callable" && declared > 0 && declared < found
  return fits ? [] : [{ of: "model", name, kind: "batching", declared: rows(declared), found: rows(found) }]
}

const rows = (maxBatchSize: number): string =>
  maxBatchSize === 0 ? "no batches" : `batches of up to ${maxBatchSize} rows`

const tensors = (
  of: "input" | "output",
  declared: Contract,
  found: Contract,
  question: "callable" | "same",
): ReadonlyArray<Difference> => {
  const [ours, theirs] = of === "input" ? [declared.inputs, found.inputs] : [declared.outputs, found.outputs]
  // What nothing is known of has its batch dimension among the others.
  const isWhole = found.maxBatchSize === undefined && (declared.maxBatchSize ?? 0) > 0
  const shown = ours.map((tensor) => (isWhole && tensor.dims ? { ...tensor, dims: [-1, ...tensor.dims] } : tensor))
  const changed = shown.flatMap((tensor): ReadonlyArray<Difference> => {
    const other = theirs.find(({ name }) => name === tensor.name)
    if (other === undefined) {
      return [{ of, name: tensor.name, kind: "missing", declared: text(tensor), found: undefined }]
    }
    return differences(of, tensor, other, question)
  })
  const others = theirs.filter(({ name }) => !ours.some((tensor) => tensor.name === name))
  const needed = question === "same" ? others : others.filter(({ optional }) => of === "input" && optional !== true)
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
  question: "callable" | "same",
): ReadonlyArray<Difference> => {
  const { name } = declared
  const all: Array<Difference> = []
  const add = (kind: Difference["kind"], ours: string, theirs: string) =>
    all.push({ of, name, kind, declared: ours, found: theirs })
  if (declared.datatype !== found.datatype) add("datatype", text(declared), text(found))
  else if (!sameShape(of, declared.dims, found.dims, question)) add("dims", text(declared), text(found))
  const [isOurs, areTheirs] = [declared.optional === true, found.optional]
  // What has a default is sent, or filled in, where it is required.
  const isPreset = isOurs && declared.default !== undefined
  const isRefused = areTheirs !== undefined && isOurs !== areTheirs && !isPreset && (question === "same" || isOurs)
  if (of === "input" && isRefused) add("optional", word(isOurs), word(areTheirs))
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
  question: "callable" | "same",
): boolean => {
  if (declared === undefined || found === undefined) return true
  const fits = question === "same" ? isSame : of === "input" ? isSent : isRead
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
