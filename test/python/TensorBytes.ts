/** Elements of tensors as the bytes of the protocol, and back. FP16 and BF16 are numbers of their 16 bits. */

const numeric = {
  UINT8: Uint8Array,
  UINT16: Uint16Array,
  UINT32: Uint32Array,
  INT8: Int8Array,
  INT16: Int16Array,
  INT32: Int32Array,
  FP16: Uint16Array,
  BF16: Uint16Array,
  FP32: Float32Array,
  FP64: Float64Array,
}

const isNumeric = (datatype: string): datatype is keyof typeof numeric => Object.hasOwn(numeric, datatype)

const bytesOf = ({ buffer, byteLength }: { readonly buffer: ArrayBuffer; readonly byteLength: number }) =>
  new Uint8Array(buffer, 0, byteLength)

export const encode = (datatype: string, data: ReadonlyArray<unknown>): Uint8Array => {
  if (isNumeric(datatype)) return bytesOf(numeric[datatype].from(data.map(Number)))
  if (datatype === "BOOL") return Uint8Array.from(data, Number)
  if (datatype === "INT64" || datatype === "UINT64") {
    return bytesOf(BigInt64Array.from(data, (value) => BigInt.asIntN(64, BigInt(String(value)))))
  }
  return Buffer.concat(
    data.flatMap((value) => {
      const text = Buffer.from(String(value))
      return [bytesOf(Uint32Array.of(text.length)), text]
    }),
  )
}

export const decode = (datatype: string, bytes: Uint8Array): ReadonlyArray<unknown> => {
  // A copy is aligned.
  const { buffer } = Uint8Array.from(bytes)
  if (isNumeric(datatype)) return [...new numeric[datatype](buffer)]
  if (datatype === "BOOL") return [...bytes].map((value) => value === 1)
  if (datatype === "INT64") return [...new BigInt64Array(buffer)].map(Number)
  if (datatype === "UINT64") return [...new BigUint64Array(buffer)].map(Number)
  const view = new DataView(buffer)
  const texts: Array<string> = []
  for (let offset = 0; offset < bytes.length;) {
    const length = view.getUint32(offset, true)
    offset += 4
    texts.push(new TextDecoder().decode(bytes.subarray(offset, offset + length)))
    offset += length
  }
  return texts
}
