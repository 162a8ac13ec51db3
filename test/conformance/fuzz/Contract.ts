/**
 * The models of Models.ts as data: valid inputs, and the outputs for them. Implemented independently, so that the
 * product's validation is not checked against itself.
 */
import { bytesOf, datatypes } from "../Elements.ts"
import { type Tensor, tensor } from "../InferRequest.ts"

export interface Spec {
  readonly name: string
  readonly datatype: string
  /** A name stands for any extent, but the same wherever it stands. */
  readonly dims: ReadonlyArray<number | string>
  readonly optional?: boolean
}

export interface Contract {
  readonly name: string
  /** 0 for a model without a batch dimension. */
  readonly maxBatchSize: number
  readonly inputs: ReadonlyArray<Spec>
  readonly outputs: ReadonlyArray<{ readonly name: string; readonly datatype: string }>
  /** Outputs, with the batch dimension, from valid inputs by name; undefined where the model itself refuses them. */
  readonly outputsFor: (inputs: ReadonlyMap<string, Tensor>) => ReadonlyArray<Tensor> | undefined
}

const echo = (name: string, inputs: ReadonlyArray<Spec>, maxBatchSize: number): Contract => ({
  name,
  maxBatchSize,
  inputs,
  outputs: inputs,
  outputsFor: (sent) => inputs.flatMap((spec) => sent.get(spec.name) ?? [tensor(spec.name, spec.datatype, [0], [])]),
})

/** Two inputs to their sum and their difference. */
const addSub = (
  name: string,
  datatype: string,
  names: readonly [string, string, string, string],
  width: number,
  maxBatchSize: number,
): Contract => {
  const [a, b, sum, difference] = names
  return {
    name,
    maxBatchSize,
    inputs: [a, b].map((input) => ({ name: input, datatype, dims: [width] })),
    outputs: [sum, difference].map((output) => ({ name: output, datatype })),
    outputsFor: (sent) => {
      const [one, other] = [sent.get(a), sent.get(b)]
      if (one === undefined || other === undefined) return undefined
      const combine = (output: string, f: (x: number, y: number) => number) => {
        const others = numbers(other)
        return tensor(
          output,
          datatype,
          one.shape,
          numbers(one).map((x, index) => f(x, others[index] ?? 0)),
        )
      }
      return [combine(sum, (x, y) => x + y), combine(difference, (x, y) => x - y)]
    },
  }
}

/** Of INT32 or FP32. */
const numbers = (of: Tensor): ReadonlyArray<number> => {
  const bytes = bytesOf(of)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  return Array.from({ length: bytes.length / 4 }, (_, index) =>
    of.datatype === "INT32" ? view.getInt32(index * 4, true) : view.getFloat32(index * 4, true),
  )
}

const text: Contract = {
  name: "text",
  maxBatchSize: 4,
  inputs: [{ name: "TEXT", datatype: "BYTES", dims: [1] }],
  outputs: [{ name: "TEXT", datatype: "BYTES" }],
  outputsFor: (sent) => {
    const one = sent.get("TEXT")
    return one !== undefined && strings(bytesOf(one))?.every(isUtf8) === true ? [one] : undefined
  },
}

const scores: Contract = {
  name: "scores",
  maxBatchSize: 4,
  inputs: [{ name: "X", datatype: "FP32", dims: ["n"] }],
  outputs: [
    { name: "SCORE", datatype: "FP32" },
    { name: "CLASS", datatype: "INT32" },
    { name: "TEXT", datatype: "BYTES" },
    { name: "HALF", datatype: "FP16" },
  ],
  outputsFor: (sent) => {
    const x = sent.get("X")
    if (x === undefined) return undefined
    const rows = Number(x.shape[0])
    const column = <A>(value: A) => Array.from({ length: rows }, () => value)
    return [
      { ...x, name: "SCORE" },
      tensor("CLASS", "INT32", [rows, 1], column(1)),
      tensor("TEXT", "BYTES", [rows, 1], column("")),
      tensor("HALF", "FP16", [rows, 1], column(1)),
    ]
  },
}

/** The elements of BYTES; undefined where the bytes are no such elements. */
export const strings = (bytes: Uint8Array): ReadonlyArray<Uint8Array> | undefined => {
  const buffer = Buffer.from(bytes)
  const found: Array<Uint8Array> = []
  for (let position = 0; position < buffer.length;) {
    if (buffer.length - position < 4) return undefined
    const end = position + 4 + buffer.readUInt32LE(position)
    if (end > buffer.length) return undefined
    found.push(buffer.subarray(position + 4, end))
    position = end
  }
  return found
}

export const isUtf8 = (bytes: Uint8Array): boolean => {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes)
    return true
  } catch {
    return false
  }
}

export const contracts: ReadonlyArray<Contract> = [
  ...datatypes.flatMap((datatype) =>
    [8, 0].map((maxBatchSize) =>
      echo(
        `${maxBatchSize > 0 ? "batched" : "single"}_${datatype.toLowerCase()}`,
        [{ name: "X", datatype, dims: ["n"] }],
        maxBatchSize,
      ),
    ),
  ),
  addSub("simple", "INT32", ["INPUT0", "INPUT1", "OUTPUT0", "OUTPUT1"], 16, 8),
  addSub("onnx_simple", "FP32", ["A", "B", "SUM", "DIFFERENCE"], 2, 4),
  echo(
    "shapes",
    [
      { name: "A", datatype: "FP32", dims: ["n", 2] },
      { name: "B", datatype: "INT64", dims: ["m"], optional: true },
      { name: "C", datatype: "FP32", dims: ["n"] },
      { name: "D", datatype: "UINT8", dims: [] },
    ],
    0,
  ),
  echo("matrix", [{ name: "X", datatype: "FP32", dims: ["rows", "columns"] }], 0),
  echo("pair", [{ name: "X", datatype: "BYTES", dims: [2] }], 0),
  text,
  scores,
]
