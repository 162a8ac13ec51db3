/**
 * A response as bytes, for caches outside of this process:
 *
 *   length of the header, 4 bytes, little endian │ header, JSON │ bytes of the tensors, one behind another
 *
 * Bytes that are no such response, as those of another release, decode to nothing.
 */
import { Schema } from "effect"
import { byteWidth, isDataType } from "../tensor/DataType.ts"
import { noParameters, type Parameter, type Response } from "../request/Request.ts"
import { elementCount, TypedTensor } from "../tensor/TypedTensor.ts"

const header = Schema.fromJsonString(
  Schema.Struct({
    outputs: Schema.Array(
      Schema.NullOr(
        Schema.Struct({
          datatype: Schema.String,
          shape: Schema.Array(Schema.Int),
          length: Schema.Int,
        }),
      ),
    ),
    parameters: Schema.Array(
      Schema.Tuple([Schema.String, Schema.Literals(["string", "number", "bigint", "boolean"]), Schema.String]),
    ),
  }),
)

const decodeHeader = Schema.decodeUnknownOption(header)

export const encode = ({ outputs, parameters }: Response): Uint8Array => {
  const described = {
    outputs: outputs.map(
      (tensor) => tensor && { datatype: tensor.datatype, shape: tensor.shape, length: tensor.bytes.length },
    ),
    parameters: Object.entries(parameters).map(([name, value]) => [name, typeof value, String(value)]),
  }
  const text = new TextEncoder().encode(
    JSON.stringify({ ...described, outputs: described.outputs.map((output) => output ?? null) }),
  )
  const size = outputs.reduce((sum, tensor) => sum + (tensor?.bytes.length ?? 0), 4 + text.length)
  const bytes = new Uint8Array(size)
  new DataView(bytes.buffer).setUint32(0, text.length, true)
  bytes.set(text, 4)
  let offset = 4 + text.length
  for (const tensor of outputs) {
    if (tensor === undefined) continue
    bytes.set(tensor.bytes, offset)
    offset += tensor.bytes.length
  }
  return bytes
}

/** Undefined for bytes that are no response. */
export const decode = (bytes: Uint8Array): Response | undefined => {
  if (bytes.length < 4) return undefined
  const end = 4 + new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true)
  if (end > bytes.length) return undefined
  const read = decodeHeader(new TextDecoder().decode(bytes.subarray(4, end)))
  if (read._tag === "None") return undefined
  let offset = end
  const outputs: Array<TypedTensor | undefined> = []
  for (const output of read.value.outputs) {
    if (output === null) {
      outputs.push(undefined)
      continue
    }
    const { datatype, shape, length } = output
    if (!isDataType(datatype) || length < 0 || shape.some((extent) => extent < 0)) return undefined
    const width = byteWidth(datatype)
    if (width !== undefined && elementCount(shape) * width !== length) return undefined
    if (offset + length > bytes.length) return undefined
    // A copy, because its owner may change it, and elements need an alignment.
    const content = bytes.slice(offset, offset + length)
    if (width === undefined && !hasElements(content, elementCount(shape))) return undefined
    outputs.push(new TypedTensor(datatype, shape, content))
    offset += length
  }
  if (offset !== bytes.length) return undefined
  const { parameters } = read.value
  if (parameters.length === 0) return { outputs, parameters: noParameters }
  const values: Array<readonly [string, Parameter]> = []
  for (const [name, type, text] of parameters) {
    const value = parameterOf(type, text)
    if (value === undefined) return undefined
    values.push([name, value])
  }
  return { outputs, parameters: Object.fromEntries(values) }
}

const parameterOf = (type: "string" | "number" | "bigint" | "boolean", text: string): Parameter | undefined => {
  switch (type) {
    case "string":
      return text
    case "number":
      return Number(text)
    case "bigint":
      return /^-?[0-9]{1,20}$/.test(text) ? BigInt(text) : undefined
    case "boolean":
      return text === "true"
  }
}

/** Whether the bytes are so many elements of BYTES, each behind its length. */
const hasElements = (bytes: Uint8Array, count: number): boolean => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  let offset = 0
  let elements = 0
  for (; offset + 4 <= bytes.length; elements++) offset += 4 + view.getUint32(offset, true)
  return offset === bytes.length && elements === count
}
