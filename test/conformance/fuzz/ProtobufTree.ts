/**
 * A second reader of protobuf's encoding, for the tests alone: slow, and as strict as Google's. protobuf-es checks
 * neither wire types nor the ends of nested messages.
 * https://protobuf.dev/programming-guides/encoding
 */
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf"

interface Found {
  readonly number: number
  readonly wire: number
  readonly tag: Buffer
  /** Without the length. */
  readonly value: Buffer
}

/**
 * The message again, with only those fields that its schema has with these wire types.
 * @throws SyntaxError where the bytes are no message
 */
export const selected = (schema: DescMessage, bytes: Uint8Array): Buffer =>
  Buffer.concat(
    split(Buffer.from(bytes)).flatMap((found) => {
      const field = schema.fields.find(({ number }) => number === found.number)
      return field === undefined ? [] : kept(field, found)
    }),
  )

const kept = (field: DescField, found: Found): ReadonlyArray<Buffer> => {
  const wire = field.fieldKind === "map" ? 2 : wireOf(field)
  if (field.fieldKind === "list" && wire !== 2 && found.wire === 2) {
    // A packed run is each of its numbers by itself.
    const tag = varint(BigInt(found.number * 8 + wire))
    return numbers(found.value, wire).flatMap((value) => [tag, value])
  }
  if (found.wire !== wire) return []
  if (wire !== 2) return [found.tag, found.value]
  const { message } = field
  if (field.fieldKind === "map") {
    const entry = split(found.value).flatMap((part) => {
      if (part.number === 1 && part.wire === 2) return [part.tag, ...delimited(part.value)]
      if (part.number !== 2 || part.wire !== 2 || message === undefined) return []
      return [part.tag, ...delimited(selected(message, part.value))]
    })
    return [found.tag, ...delimited(Buffer.concat(entry))]
  }
  return [found.tag, ...delimited(message === undefined ? found.value : selected(message, found.value))]
}

const delimited = (value: Buffer): ReadonlyArray<Buffer> => [varint(BigInt(value.length)), value]

const wireOf = ({ scalar, message }: DescField): number => {
  if (message !== undefined || scalar === ScalarType.STRING || scalar === ScalarType.BYTES) return 2
  if (scalar === ScalarType.DOUBLE) return 1
  return scalar === ScalarType.FLOAT ? 5 : 0
}

const numbers = (run: Buffer, wire: number): ReadonlyArray<Buffer> => {
  if (run.length === 0) return []
  const first = valueOf(run, wire)
  return [first, ...numbers(run.subarray(first.length), wire)]
}

const split = (bytes: Buffer): ReadonlyArray<Found> => {
  const found: Array<Found> = []
  for (let rest = bytes; rest.length > 0;) {
    const [field, length] = read(rest, 0)
    if (field.wire === 4) fail("end of no group")
    found.push(field)
    rest = rest.subarray(length)
  }
  return found
}

/** The first field, and its bytes in all. */
const read = (bytes: Buffer, depth: number): readonly [Found, number] => {
  const tag = valueOf(bytes, 0, 5)
  const value = numberOf(tag)
  const [number, wire] = [Number(value >> 3n), Number(value & 7n)]
  if (number === 0 || value >= 2n ** 32n || wire > 5) fail("tag")
  const rest = bytes.subarray(tag.length)
  if (wire === 4) return [{ number, wire, tag, value: rest.subarray(0, 0) }, tag.length]
  if (wire === 3) {
    if (depth === 100) fail("depth")
    for (let length = 0; ;) {
      const [inner, size] = read(rest.subarray(length), depth + 1)
      length += size
      if (inner.wire !== 4) continue
      if (inner.number !== number) fail("end of another group")
      return [{ number, wire, tag, value: rest.subarray(0, length) }, tag.length + length]
    }
  }
  if (wire !== 2) {
    const payload = valueOf(rest, wire)
    return [{ number, wire, tag, value: payload }, tag.length + payload.length]
  }
  const prefix = valueOf(rest, 0, 5)
  const end = prefix.length + Number(numberOf(prefix))
  if (end > rest.length) fail("length")
  return [{ number, wire, tag, value: rest.subarray(prefix.length, end) }, tag.length + end]
}

/** The bytes of a number. */
const valueOf = (bytes: Buffer, wire: number, longest = 10): Buffer => {
  const length = wire === 1 ? 8 : wire === 5 ? 4 : bytes.findIndex((byte) => byte < 0x80) + 1
  return length === 0 || length > bytes.length || length > longest ? fail("number") : bytes.subarray(0, length)
}

const numberOf = (bytes: Buffer): bigint => bytes.reduceRight((sum, byte) => (sum << 7n) | BigInt(byte & 0x7f), 0n)

const varint = (value: bigint): Buffer =>
  value < 0x80n
    ? Buffer.of(Number(value))
    : Buffer.concat([Buffer.of(Number(value & 0x7fn) | 0x80), varint(value >> 7n)])

const fail = (reason: string): never => {
  throw new SyntaxError(`No protobuf: ${reason}`)
}
