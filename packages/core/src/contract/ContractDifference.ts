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
import { isDataType } from "../tensor/DataType.ts"
import type { Contract, ContractTensor } from "./Contract.ts"
import * as DefaultDocument from "./DefaultDocument.ts"
import { fits } from "./JsonFit.ts"
import { typeText } from "./JsonSource.ts"
import type { JsonDocument } from "./JsonType.ts"

/** One difference between a contract and the model that a server runs. */
export interface Difference {
  readonly of: "input" | "output" | "model" | "parameter" | "response parameter" | "error"
  /** Of the tensor, model, parameter or error. */
  readonly name: string
  /**
   * `missing`: declared, not found. `undeclared`: found, but not declared. `batching`: one has a batch dimension, or
   * batches of more rows. `sequence`: the requests of one belong to sequences. `optional`: one lets requests leave it
   * out. `type`: of the JSON value, of the parameter or of the fields of the error. `form`: one is text or JSON.
   * `default` and `status` are compared for the file alone.
   */
  readonly kind:
    | "missing"
    | "undeclared"
    | "datatype"
    | "dims"
    | "batching"
    | "sequence"
    | "optional"
    | "labels"
    | "form"
    | "type"
    | "default"
    | "status"
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
  ...sequences(declared, found),
  ...tensors("input", declared, found, relation),
  ...tensors("output", declared, found, relation),
  ...parameters("parameter", declared.parameters, found.parameters, relation),
  ...parameters("response parameter", declared.responseParameters, found.responseParameters, relation),
  ...errors(declared.errors, found.errors, relation),
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

/** Time limits are not compared: they are up to the server. */
const sequences = (
  { name, sequence: declared }: Contract,
  { sequence: found }: Contract,
): ReadonlyArray<Difference> => {
  if (declared === undefined || found === undefined || (declared === false) === (found === false)) return []
  const [mine, other] = [declared, found].map((sequence) => (sequence === false ? "independent requests" : "sequences"))
  return [{ of: "model", name, kind: "sequence", declared: mine, found: other }]
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
  if (declared.form !== undefined && found.form !== undefined && relation === "same") {
    // A scalar is a tensor of one number.
    const [form, other] = [declared.form, found.form].map((form) => (form === "scalar" ? "tensor" : form))
    if (form !== other && form === "tensor") add("form", `${declared.form}`, `${found.form}`)
  }
  if (declared.json !== undefined && found.json !== undefined) {
    const exchanged = of === "input" ? [declared.json, found.json] : [found.json, declared.json]
    if (!isExchanged(exchanged, of === "input", relation)) add("type", typeText(declared.json), typeText(found.json))
  }
  if (of === "input" && relation === "same") {
    const [preset, otherPreset] = [defaultText(declared), defaultText(found)]
    const areKnown = preset !== undefined && otherPreset !== undefined
    if (areKnown && preset !== otherPreset) add("default", preset, otherPreset)
  }
  return all
}

/** Undefined for a default that no document has. */
const defaultText = ({ datatype, default: preset }: ContractTensor): string | undefined => {
  const document = preset && isDataType(datatype) ? DefaultDocument.write(datatype, preset) : undefined
  if (document === undefined) return undefined
  const text = JSON.stringify("data" in document ? document.data : document.element)
  return `default ${text.length > 100 ? `${text.slice(0, 100)}…` : text}`
}

/** Whether values are accepted: of the sender and of the receiver, either of which may be the declared one. */
const isExchanged = (
  [sent, taken]: ReadonlyArray<JsonDocument>,
  isDeclaredSent: boolean,
  relation: "callable" | "same",
): boolean => {
  if (sent === undefined || taken === undefined) return true
  if (relation === "same") return fits(sent, taken, "all") && fits(taken, sent, "all")
  return fits(sent, taken, isDeclaredSent ? "all" : "some")
}

const parameters = (
  of: "parameter" | "response parameter",
  declared: Contract["parameters"],
  found: Contract["parameters"],
  relation: "callable" | "same",
): ReadonlyArray<Difference> => {
  if (declared === undefined && relation === "callable" && of === "response parameter") return []
  if (found === undefined) return []
  const isSent = of === "parameter"
  const mine = declared ?? []
  const missing = mine.filter(({ name, optional }) => {
    const isNeeded = relation === "same" || (!isSent && !optional)
    return isNeeded && !found.some((other) => other.name === name)
  })
  const both = found.flatMap((other): ReadonlyArray<Difference> => {
    const { name } = other
    const one = mine.find((parameter) => parameter.name === name)
    if (one === undefined) {
      // A caller without declared parameters may send any.
      const isNeeded = relation === "same" || (isSent && !other.optional && declared !== undefined)
      return isNeeded ? [{ of, name, kind: "undeclared", declared: undefined, found: typeText(other.json) }] : []
    }
    const [sent, taken] = isSent ? [one, other] : [other, one]
    const isRefused = relation === "same" ? one.optional !== other.optional : sent.optional && !taken.optional
    if (!isExchanged([sent.json, taken.json], isSent, relation)) {
      return [{ of, name, kind: "type", declared: typeText(one.json), found: typeText(other.json) }]
    }
    return isRefused ? [{ of, name, kind: "optional", declared: word(one.optional), found: word(other.optional) }] : []
  })
  return [
    ...missing.map(({ name, json }): Difference => ({
      of,
      name,
      kind: "missing",
      declared: typeText(json),
      found: undefined,
    })),
    ...both,
  ]
}

const errors = (
  declared: Contract["errors"] = [],
  found: Contract["errors"],
  relation: "callable" | "same",
): ReadonlyArray<Difference> => {
  if (found === undefined) return []
  const missing = declared.filter(({ tag }) => relation === "same" && !found.some((other) => other.tag === tag))
  return [
    ...missing.map(({ tag }): Difference => ({
      of: "error",
      name: tag,
      kind: "missing",
      declared: tag,
      found: undefined,
    })),
    ...found.flatMap((other): ReadonlyArray<Difference> => {
      const common = { of: "error", name: other.tag } as const
      const one = declared.find(({ tag }) => tag === other.tag)
      if (one === undefined) {
        return relation === "same" ? [{ ...common, kind: "undeclared", declared: undefined, found: other.tag }] : []
      }
      if (!isExchanged([other.json, one.json], false, relation)) {
        return [{ ...common, kind: "type", declared: typeText(one.json), found: typeText(other.json) }]
      }
      const [status, otherStatus] = [one, other].map(({ http, grpc }) => `${http} and ${grpc}`)
      if (relation === "callable" || status === otherStatus) return []
      return [{ ...common, kind: "status", declared: status, found: otherStatus }]
    }),
  ]
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
