/**
 * Generates nearly valid protobuf messages: splits a message into its fields, changes them, and joins them again.
 * Decoders must accept or reject each change, and two decoders might differ about it.
 */
import * as fc from "fast-check"

interface Field {
  readonly number: number
  readonly wire: number
  /** Behind tag and length. */
  readonly payload: Uint8Array
}

type Change = (fields: ReadonlyArray<Field>, at: number, byte: number) => ReadonlyArray<Field | Uint8Array>

const varint = (value: number, padding = 0): Array<number> => {
  const bytes: Array<number> = []
  let rest = value
  for (; rest >= 0x80 || bytes.length < padding; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80)
  return [...bytes, rest]
}

const readVarint = (bytes: Uint8Array, from: number): readonly [value: number, end: number] | undefined => {
  let value = 0
  for (let index = from, scale = 1; index < Math.min(bytes.length, from + 5); index++, scale *= 0x80) {
    const byte = bytes[index] ?? 0
    value += (byte & 0x7f) * scale
    if (byte < 0x80) return [value, index + 1]
  }
  return undefined
}

/** Splits a message into its fields; undefined if the bytes are not a message. */
const split = (bytes: Uint8Array): ReadonlyArray<Field> | undefined => {
  const fields: Array<Field> = []
  for (let offset = 0; offset < bytes.length;) {
    const tag = readVarint(bytes, offset)
    if (tag === undefined) return undefined
    const [number, wire] = [Math.floor(tag[0] / 8), tag[0] % 8]
    let [start, end]: [number, number | undefined] = [tag[1], undefined]
    if (wire === 0) end = readVarint(bytes, start)?.[1]
    if (wire === 1) end = start + 8
    if (wire === 5) end = start + 4
    if (wire === 2) {
      const length = readVarint(bytes, start)
      if (length === undefined) return undefined
      start = length[1]
      end = start + length[0]
    }
    if (number === 0 || end === undefined || end > bytes.length) return undefined
    fields.push({ number, wire, payload: bytes.subarray(start, end) })
    offset = end
  }
  return fields
}

const join = (fields: ReadonlyArray<Field | Uint8Array>): Uint8Array =>
  new Uint8Array(Buffer.concat(fields.map((field) => (field instanceof Uint8Array ? field : encode(field)))))

const encode = ({ number, wire, payload }: Field, padding = 0): Uint8Array =>
  Uint8Array.of(
    ...varint(number * 8 + wire, padding),
    ...(wire === 2 ? varint(payload.length, padding) : []),
    ...payload,
  )

const at = <A>(fields: ReadonlyArray<A>, index: number): A | undefined => fields[index % Math.max(1, fields.length)]

const replaced = (fields: ReadonlyArray<Field>, index: number, by: ReadonlyArray<Field | Uint8Array>) => {
  const place = index % Math.max(1, fields.length)
  return [...fields.slice(0, place), ...by, ...fields.slice(place + 1)]
}

const changed =
  (change: (field: Field, byte: number) => ReadonlyArray<Field | Uint8Array>): Change =>
  (fields, index, byte) => {
    const field = at(fields, index)
    return field === undefined ? fields : replaced(fields, index, change(field, byte))
  }

const changes: ReadonlyArray<Change> = [
  // A duplicate field, a missing field, two swapped fields.
  changed((field) => [field, field]),
  changed(() => []),
  (fields, index, byte) => {
    const [one, other] = [at(fields, index), at(fields, byte)]
    return one === undefined || other === undefined
      ? fields
      : replaced(replaced(fields, index, [other]) as Array<Field>, byte, [one])
  },
  (fields) => fields.toReversed(),
  // An unknown field: of every wire type, a group, a number beyond one byte.
  (fields, index, byte) => [
    ...fields.slice(0, index % 4),
    { number: 9 + (byte % 40), wire: 2, payload: Uint8Array.of(1, 2) },
    ...fields.slice(index % 4),
  ],
  (fields, _, byte) => [...fields, { number: 12, wire: 0, payload: Uint8Array.of(byte % 128) }],
  (fields) => [{ number: 13, wire: 5, payload: new Uint8Array(4) }, ...fields],
  (fields) => [{ number: 14, wire: 1, payload: new Uint8Array(8) }, ...fields],
  (fields) => [Uint8Array.of(0x7b, 0x08, 0x01, 0x7c), ...fields],
  (fields) => [Uint8Array.of(0x7b, 0x08, 0x01, 0x74), ...fields],
  // Varints with more bytes than they need.
  changed((field, byte) => [encode(field, 1 + (byte % 9))]),
  // The numbers of a packed field one by one, and one by one what should be packed.
  changed((field) => [...field.payload].map((byte) => Uint8Array.of(...varint(field.number * 8), byte & 0x7f))),
  changed((field) => {
    const fours = Array.from({ length: Math.floor(field.payload.length / 4) }, (_, index) =>
      field.payload.subarray(4 * index, 4 * index + 4),
    )
    return fours.map((payload) => ({ ...field, wire: 5, payload }))
  }),
  changed((field) => [
    { ...field, payload: field.payload.subarray(0, field.payload.length >> 1) },
    { ...field, payload: field.payload.subarray(field.payload.length >> 1) },
  ]),
  // Another wire type, another number, the same bytes.
  changed((field, byte) => [{ ...field, wire: byte % 8 }]),
  changed((field, byte) => [{ ...field, number: 1 + (byte % 8) }]),
  // A length that is wrong, bytes that are cut off, and some that are other.
  changed((field, byte) => [Uint8Array.of(...varint(field.number * 8 + 2), ...varint(byte), ...field.payload)]),
  changed((field, byte) => [{ ...field, payload: field.payload.subarray(0, byte % (field.payload.length + 1)) }]),
  changed((field, byte) => [{ ...field, payload: field.payload.map((old, at) => (at === byte % 8 ? byte : old)) }]),
  changed((field, byte) => [{ ...field, payload: Uint8Array.of(...field.payload, byte) }]),
]

interface Step {
  readonly change: number
  readonly index: number
  readonly byte: number
  /** Which field to go into first, at each level. */
  readonly path: ReadonlyArray<number>
}

const apply = (bytes: Uint8Array, { change, index, byte, path }: Step): Uint8Array => {
  const fields = split(bytes)
  if (fields === undefined) return bytes
  const [first, ...rest] = path
  const inner = first === undefined ? undefined : at(fields, first)
  if (inner?.wire === 2 && first !== undefined && split(inner.payload) !== undefined) {
    const payload = apply(inner.payload, { change, index, byte, path: rest })
    return join(replaced(fields, first, [{ ...inner, payload }]))
  }
  return join(changes[change % changes.length]?.(fields, index, byte) ?? fields)
}

const step: fc.Arbitrary<Step> = fc.record({
  change: fc.nat(changes.length - 1),
  index: fc.nat(20),
  byte: fc.nat(255),
  path: fc.array(fc.nat(20), { maxLength: 3 }),
})

const flip = fc.record({ at: fc.nat(), cut: fc.nat(4), put: fc.uint8Array({ maxLength: 4 }) })

/** Messages with one to three changes to their fields, at any depth, or to their bytes. */
export const mutated = (messages: fc.Arbitrary<Uint8Array>): fc.Arbitrary<Uint8Array> =>
  fc
    .tuple(messages, fc.array(fc.oneof({ arbitrary: step, weight: 3 }, flip), { minLength: 1, maxLength: 3 }))
    .map(([message, steps]) => {
      let bytes = message
      for (const one of steps) {
        if ("change" in one) bytes = apply(bytes, one)
        else {
          const from = one.at % (bytes.length + 1)
          bytes = Uint8Array.of(...bytes.subarray(0, from), ...one.put, ...bytes.subarray(from + one.cut))
        }
      }
      return bytes
    })
