/**
 * Elements as bytes and as JSON text, written for the tests alone: plain, slow and independent of the product's codecs.
 */
import type { Element, Tensor } from "./InferRequest.ts"

/** Bytes of one element; none for BYTES. */
export const widths: ReadonlyMap<string, number> = new Map(
  Object.entries({
    BOOL: 1,
    UINT8: 1,
    UINT16: 2,
    UINT32: 4,
    UINT64: 8,
    INT8: 1,
    INT16: 2,
    INT32: 4,
    INT64: 8,
    FP16: 2,
    FP32: 4,
    FP64: 8,
    BF16: 2,
  }),
)

export const datatypes: ReadonlyArray<string> = [...widths.keys(), "BYTES"]

/** As they travel in binary: little endian, BYTES with their length before them. */
export const bytesOf = ({ datatype, elements, bytes }: Tensor): Uint8Array => {
  if (bytes !== undefined) return bytes
  if (datatype === "BYTES") return Buffer.concat(elements.map(prefixed))
  const buffer = Buffer.alloc(elements.length * (widths.get(datatype) ?? 1))
  const view = new DataView(buffer.buffer, buffer.byteOffset, buffer.length)
  for (const [index, element] of elements.entries()) put(view, datatype, index, element)
  return buffer
}

const prefixed = (element: Element): Uint8Array => {
  const content = contentOf(element)
  const prefix = Buffer.alloc(4)
  prefix.writeUInt32LE(content.length)
  return Buffer.concat([prefix, content])
}

/** The bytes of a BYTES element. */
export const contentOf = (element: Element): Uint8Array =>
  element instanceof Uint8Array ? element : Buffer.from(String(element))

const put = (view: DataView, datatype: string, index: number, element: Element): void => {
  const number = Number(element)
  switch (datatype) {
    case "BOOL":
    case "UINT8":
      return view.setUint8(index, number)
    case "UINT16":
      return view.setUint16(index * 2, number, true)
    case "UINT32":
      return view.setUint32(index * 4, number, true)
    case "UINT64":
    case "INT64":
      return view.setBigInt64(index * 8, BigInt.asIntN(64, BigInt(number === element ? number : String(element))), true)
    case "INT8":
      return view.setInt8(index, number)
    case "INT16":
      return view.setInt16(index * 2, number, true)
    case "INT32":
      return view.setInt32(index * 4, number, true)
    case "FP16":
      return view.setFloat16(index * 2, number, true)
    case "FP32":
      return view.setFloat32(index * 4, number, true)
    case "FP64":
      return view.setFloat64(index * 8, number, true)
    case "BF16": {
      const whole = new DataView(new ArrayBuffer(4))
      whole.setFloat32(0, number)
      return view.setUint16(index * 2, whole.getUint16(0), true)
    }
  }
}

/** One element as it stands in JSON. */
export const jsonOf = (element: Element): string => {
  if (typeof element === "string") return JSON.stringify(element)
  if (Object.is(element, -0)) return "-0.0"
  return String(element)
}
