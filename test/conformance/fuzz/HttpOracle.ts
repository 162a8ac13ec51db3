/**
 * The expected outputs of a request to `infer` over HTTP, read from its bytes: the document as a tree (JsonTree.ts),
 * and the rules of the protocol and its extensions. Independent of the server's code.
 * https://github.com/kserve/open-inference-protocol/blob/main/specification/protocol/inference_rest.md
 * https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_binary_data.md
 */
import { gunzipSync, inflateSync } from "node:zlib"
import { bytesOf, widths } from "../Elements.ts"
import type { HttpRequest } from "../HttpEncoding.ts"
import type { Element, Tensor } from "../InferRequest.ts"
import { type JsonTree, parse } from "./JsonTree.ts"
import { contractOf, deserved, type ReceivedOutput, type ReceivedTensor, refuse } from "./Verdict.ts"

/** @throws Refusal or SyntaxError where it deserves no outputs */
export const outputsOf = ({ path, headers = {}, body = "" }: HttpRequest): ReadonlyArray<Tensor> => {
  const [, quoted = "", version = ""] =
    /^\/v2\/models\/([^/?]+)(?:\/versions\/([0-9]+))?\/infer$/.exec(path) ?? refuse("no such path")
  const model = decodeURIComponent(quoted)
  const header = (name: string) => Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  if (!/^[0-9]{1,12}(\.[0-9]+)?$/.test(header("nereid-timeout-ms") ?? "0")) refuse("timeout")
  const bytes = decompressed(header("content-encoding") ?? "", Buffer.from(body))
  const length = header("inference-header-content-length")
  if (length !== undefined && !/^\s*[-+]?[0-9]+\s*$/.test(length)) refuse("length of the document")
  const end = length === undefined ? bytes.length : Number(length)
  const contract = contractOf(model, version)
  if (end === 0 && length !== undefined) {
    const [spec, ...others] = contract.inputs
    if (spec === undefined || others.length > 0) return refuse("one input")
    const width = widths.get(spec.datatype)
    if (spec.dims.filter((dim) => typeof dim === "string").length > (width === undefined ? 0 : 1)) refuse("dims")
    if (width === undefined && spec.dims.some((dim) => dim !== 1)) refuse("more than one string")
    const extent = BigInt(Math.floor(bytes.length / (width ?? 1)))
    const own = spec.dims.map((dim) => (typeof dim === "number" ? BigInt(dim) : extent))
    const shape = contract.maxBatchSize > 0 ? [1n, ...own] : own
    const content = width === undefined ? bytesOf({ name: "", datatype: "BYTES", shape: [], elements: [bytes] }) : bytes
    const input = { name: spec.name, datatype: spec.datatype, shape, bytes: content }
    return deserved({ model, version, inputs: [input], outputs: [] }, false)
  }
  if (end < 0 || end > bytes.length) refuse("length of the document")
  return document(parse(bytes.subarray(0, end)), bytes.subarray(end), model, version)
}

const decompressed = (encoding: string, body: Buffer): Buffer => {
  const name = encoding.trim().toLowerCase()
  if (name === "" || name === "identity") return body
  if (name !== "gzip" && name !== "deflate") return refuse("encoding")
  try {
    return name === "gzip" ? gunzipSync(body) : inflateSync(body)
  } catch {
    return refuse("compressed body")
  }
}

const document = (tree: JsonTree, tail: Buffer, model: string, version: string): ReadonlyArray<Tensor> => {
  checkNumbers(tree, ["inputs", "data"])
  const id = member(tree, "id")
  if (id !== undefined) stringOf(id)
  const parameters = parametersOf(member(tree, "parameters"), "request")
  for (const [name, value] of parameters) checkKnown(name, value)
  const binaryOutputs = booleanOf(parameters.get("binary_data_output")) ?? false
  let position = 0
  const inputs = elementsOf(member(tree, "inputs") ?? refuse("no inputs")).map((input): ReceivedTensor => {
    const own = parametersOf(member(input, "parameters"), "tensor")
    if ([...own.keys()].some((name) => name.startsWith("shared_memory_"))) refuse("shared memory")
    const head = {
      name: stringOf(member(input, "name") ?? refuse("no name")),
      datatype: stringOf(member(input, "datatype") ?? refuse("no datatype")),
      shape: elementsOf(member(input, "shape") ?? refuse("no shape")).map(extentOf),
    }
    const size = own.get("binary_data_size")
    const data = member(input, "data")
    if ((size === undefined) === (data === undefined)) return refuse("data and binary data")
    if (data !== undefined) return { ...head, bytes: bytesOf({ ...head, elements: dataOf(data, head) }) }
    const length = Number(unsignedOf(size ?? refuse("no size")))
    position += length
    if (position > tail.length) refuse("too little binary data")
    return { ...head, bytes: tail.subarray(position - length, position) }
  })
  if (position !== tail.length) refuse("too much binary data")
  const requested = member(tree, "outputs")
  const outputs = requested === undefined ? [] : elementsOf(requested).map((output) => outputOf(output, binaryOutputs))
  return deserved({ model, version, inputs, outputs }, !binaryOutputs)
}

const outputOf = (output: JsonTree, binaryOutputs: boolean): ReceivedOutput => {
  const name = stringOf(member(output, "name") ?? refuse("no name"))
  const own = parametersOf(member(output, "parameters"), "tensor")
  if ([...own.keys()].some((key) => key.startsWith("shared_memory_"))) refuse("shared memory")
  const asJson = !(booleanOf(own.get("binary_data")) ?? binaryOutputs)
  const classification = own.get("classification")
  if (classification === undefined) return { name, asJson, classification: undefined }
  return { name, asJson, classification: Number(integerOf(classification)) }
}

/** Only in the data of tensors, under these keys, are there NaN and infinities. */
const checkNumbers = (tree: JsonTree, [key, ...keys]: ReadonlyArray<string>): void => {
  if (tree.kind === "number" && !/[0-9]/.test(tree.text)) refuse("NaN")
  if (tree.kind === "array") for (const element of tree.elements) checkNumbers(element, [])
  if (tree.kind !== "object") return
  for (const [name, value] of tree.members) {
    if (name !== key) checkNumbers(value, [])
    else if (keys.length > 0 && value.kind === "array") for (const one of value.elements) checkNumbers(one, keys)
  }
}

/** Members, each once. */
export const membersOf = (tree: JsonTree): ReadonlyMap<string, JsonTree> => {
  if (tree.kind !== "object") return refuse("no object")
  const members = new Map(tree.members)
  return members.size === tree.members.length ? members : refuse("twice")
}

const member = (tree: JsonTree, name: string): JsonTree | undefined => membersOf(tree).get(name)

const elementsOf = (tree: JsonTree): ReadonlyArray<JsonTree> => {
  if (tree.kind !== "array") return refuse("no array")
  return tree.elements.length > 4096 ? refuse("too many") : tree.elements
}

export const stringOf = (tree: JsonTree): string =>
  tree.kind === "string" ? Buffer.from(tree.bytes, "latin1").toString() : refuse("no string")

const booleanOf = (tree: JsonTree | undefined): boolean | undefined => {
  if (tree === undefined) return undefined
  return tree.kind === "word" && tree.text !== "null" ? tree.text === "true" : refuse("no boolean")
}

/** An integer of at most 64 bits; anything else that looks like one is a double. */
const integerOf = (tree: JsonTree): bigint => {
  if (tree.kind !== "number" || !/^-?[0-9]{1,20}$/.test(tree.text)) return refuse("no integer")
  const value = BigInt(tree.text)
  return value >= -(2n ** 63n) && value < 2n ** 64n ? value : refuse("no integer of 64 bits")
}

const unsignedOf = (tree: JsonTree): bigint => {
  const value = integerOf(tree)
  return value >= 0n ? value : refuse("negative")
}

/** "-0" is not an unsigned number, and so not an extent. */
const extentOf = (tree: JsonTree): bigint =>
  tree.kind === "number" && /^[0-9]+$/.test(tree.text) ? BigInt(tree.text) : refuse("no extent")

/** Of a tensor's, only those that the protocol knows must be scalars. */
const known = /^(binary_data|binary_data_size|classification|shared_memory_.*)$/

const parametersOf = (tree: JsonTree | undefined, owner: "request" | "tensor"): ReadonlyMap<string, JsonTree> => {
  if (tree === undefined) return new Map()
  const found = new Map<string, JsonTree>()
  for (const [name, value] of membersOf(tree)) {
    const isScalar =
      value.kind === "string" || value.kind === "number" || (value.kind === "word" && value.text !== "null")
    if (!isScalar && (owner === "request" || known.test(name))) refuse("parameter")
    if (value.kind === "number" && /[0-9]/.test(value.text) && !Number.isFinite(Number(value.text))) refuse("too big")
    if (isScalar) found.set(name, value)
  }
  return found
}

export const checkKnown = (name: string, value: JsonTree): void => {
  if (name.startsWith("triton_")) refuse("reserved")
  if (["sequence_start", "sequence_end", "binary_data_output"].includes(name)) booleanOf(value)
  else if (name === "priority" || name === "timeout") unsignedOf(value)
  else if (name === "sequence_id" && value.kind !== "string") unsignedOf(value)
  else if (name === "sequence_id" && value.kind === "string" && value.bytes.length > 128) refuse("too long")
}

export const ranges: ReadonlyMap<string, readonly [bigint, bigint]> = new Map(
  [8n, 16n, 32n, 64n].flatMap((bits) => [
    [`INT${bits}`, [-(2n ** (bits - 1n)), 2n ** (bits - 1n) - 1n]] as const,
    [`UINT${bits}`, [0n, 2n ** bits - 1n]] as const,
  ]),
)

export const dataOf = (
  tree: JsonTree,
  { datatype, shape }: Pick<ReceivedTensor, "datatype" | "shape">,
): ReadonlyArray<Element> => {
  if (tree.kind !== "array") return refuse("data is no array")
  const flat = leaves(tree, 1)
  if (BigInt(flat.length) !== shape.reduce((product, extent) => product * extent, 1n)) refuse("number of elements")
  return flat.map((leaf): Element => {
    if (datatype === "BYTES") return leaf.kind === "string" ? Buffer.from(leaf.bytes, "latin1") : refuse("no string")
    if (datatype === "BOOL") return booleanOf(leaf) ?? refuse("no boolean")
    if (leaf.kind !== "number") return refuse("no number")
    const range = ranges.get(datatype)
    if (range === undefined) return datatype === "FP32" || datatype === "FP64" ? floatOf(leaf.text) : refuse("datatype")
    if (!/^-?[0-9]+$/.test(leaf.text)) return refuse("no integer")
    const value = BigInt(leaf.text)
    return value >= range[0] && value <= range[1] ? value : refuse("out of range")
  })
}

const floatOf = (text: string): number => {
  const value = Number(text.replace(/Inf$/, "Infinity"))
  return Number.isFinite(value) || !/[0-9]/.test(text) ? value : refuse("too big")
}

const leaves = (tree: JsonTree, depth: number): ReadonlyArray<JsonTree> => {
  if (tree.kind !== "array") return [tree]
  return depth < 100 ? tree.elements.flatMap((element) => leaves(element, depth + 1)) : refuse("too deep")
}
