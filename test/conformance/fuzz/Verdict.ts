/** The expected result of a request, over any protocol: the outputs that its contract defines, or an error. */
import { bytesOf, widths } from "../Elements.ts"
import type { Tensor } from "../InferRequest.ts"
import { type Contract, contracts, isUtf8, type Spec, strings } from "./Contract.ts"

/** A request as decoded from the sent bytes, not yet validated. */
export interface Received {
  readonly model: string
  readonly version: string
  readonly inputs: ReadonlyArray<ReceivedTensor>
  /** In the order asked for; empty for all. */
  readonly outputs: ReadonlyArray<ReceivedOutput>
}

export interface ReceivedTensor {
  readonly name: string
  readonly datatype: string
  readonly shape: ReadonlyArray<bigint>
  readonly bytes: Uint8Array
}

export interface ReceivedOutput {
  readonly name: string
  /** Sent as JSON text, which not every tensor can be. */
  readonly asJson: boolean
  readonly classification: number | undefined
}

export class Refusal extends Error {}

export const refuse = (reason: string): never => {
  throw new Refusal(reason)
}

export const contractOf = (model: string, version: string): Contract => {
  const contract = contracts.find(({ name }) => name === model)
  if (contract === undefined) return refuse(`no model ${model}`)
  if (version !== "" && !(/^[0-9]+$/.test(version) && Number(version) === 1)) return refuse(`no version ${version}`)
  return contract
}

/**
 * The outputs that the request deserves; an output of classes with no elements, as the table of cases knows them.
 * @throws Refusal where it deserves none
 */
export const deserved = (received: Received, allAsJson: boolean): ReadonlyArray<Tensor> => {
  const contract = contractOf(received.model, received.version)
  const inputs = new Map<string, Tensor>()
  const symbols = new Map<string, bigint>()
  for (const { name, datatype, shape, bytes } of received.inputs) {
    const spec = contract.inputs.find((other) => other.name === name) ?? refuse(`no input ${name}`)
    if (inputs.has(name)) refuse(`input ${name} twice`)
    if (datatype !== spec.datatype) refuse(`datatype ${datatype}`)
    checkShape(contract, spec, shape, symbols)
    checkBytes(datatype, shape, bytes)
    inputs.set(name, { name, datatype, shape, elements: [], bytes })
  }
  for (const { name, optional } of contract.inputs) {
    if (optional !== true && !inputs.has(name)) refuse(`no ${name}`)
  }
  checkRows(contract, [...inputs.values()])
  for (const [index, { name }] of received.outputs.entries()) {
    if (!contract.outputs.some((output) => output.name === name)) refuse(`no output ${name}`)
    if (received.outputs.findIndex((output) => output.name === name) !== index) refuse(`output ${name} twice`)
  }

  const outputs = contract.outputsFor(inputs) ?? refuse("the model refuses it")
  const requested =
    received.outputs.length > 0
      ? received.outputs
      : outputs.map(({ name }) => ({ name, asJson: allAsJson, classification: undefined }))
  return requested.map((one) =>
    shown(outputs.find((output) => output.name === one.name) ?? refuse(one.name), one, contract),
  )
}

const checkShape = (
  contract: Contract,
  spec: Spec,
  shape: ReadonlyArray<bigint>,
  symbols: Map<string, bigint>,
): void => {
  const own = contract.maxBatchSize > 0 ? shape.slice(1) : shape
  if (contract.maxBatchSize > 0 && shape.length === 0) refuse("no batch dimension")
  if (own.length !== spec.dims.length) refuse("rank")
  if (shape.some((extent) => extent < 0n || extent > BigInt(Number.MAX_SAFE_INTEGER))) refuse("extent")
  for (const [axis, dim] of spec.dims.entries()) {
    const extent = own[axis] ?? 0n
    if (typeof dim === "number") {
      if (BigInt(dim) !== extent) refuse("shape")
    } else if (contract.maxBatchSize === 0 && (symbols.get(dim) ?? extent) !== extent) refuse(`extent of ${dim}`)
    else symbols.set(String(dim), extent)
  }
}

const checkBytes = (datatype: string, shape: ReadonlyArray<bigint>, bytes: Uint8Array): void => {
  const count = shape.reduce((product, extent) => product * extent, 1n)
  const width = widths.get(datatype)
  if (width === undefined) {
    const elements = strings(bytes)
    if (elements === undefined || BigInt(elements.length) !== count) refuse("strings")
  } else if (count * BigInt(width) !== BigInt(bytes.length)) refuse("bytes")
}

const checkRows = ({ maxBatchSize }: Contract, inputs: ReadonlyArray<Tensor>): void => {
  if (maxBatchSize === 0) return
  const rows = Number(inputs[0]?.shape[0])
  if (inputs.some(({ shape }) => Number(shape[0]) !== rows)) refuse("rows differ")
  if (rows < 1 || rows > maxBatchSize) refuse("rows")
}

const shown = (output: Tensor, { asJson, classification }: ReceivedOutput, { maxBatchSize }: Contract): Tensor => {
  if (classification !== undefined) return classes(output, classification, maxBatchSize > 0)
  if (!asJson) return output
  if (output.datatype === "FP16" || output.datatype === "BF16") refuse("no JSON form")
  if (output.datatype === "BYTES" && strings(bytesOf(output))?.every(isUtf8) !== true) refuse("no text")
  return output
}

/** Only their shape: what stands in them, the table of cases says. */
const classes = (output: Tensor, classification: number, batched: boolean): Tensor => {
  if (["BYTES", "BOOL", "FP16", "BF16"].includes(output.datatype)) refuse("no classes")
  const shape = output.shape.map(Number)
  const own = batched ? shape.slice(1) : shape
  const length = own.reduce((product, extent) => product * extent, 1)
  const count = Math.min(Math.max(1, classification), length)
  return {
    name: output.name,
    datatype: "BYTES",
    shape: batched ? [shape[0] ?? 0, count] : [count],
    elements: [],
    bytes: anyBytes,
  }
}

/** Stands for contents that are not compared. */
export const anyBytes = new Uint8Array()
