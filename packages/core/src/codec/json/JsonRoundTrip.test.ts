/**
 * Round trips of tensors through JSON, compared with JSON.parse where it can read the text: every datatype with a JSON
 * form, every shape and kind of value. JsonDecoder.test.ts checks single numbers to the last bit.
 */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import { isDataType } from "../../tensor/DataType.ts"
import { readRequest, readResponse } from "./JsonDecoder.ts"
import type { JsonDataType } from "./JsonDataType.ts"
import { writeResponse } from "./JsonEncoder.ts"
import { elementCount, encodeElements, TypedTensor } from "../../tensor/TypedTensor.ts"
import type { WireTensor } from "../../wire/WireRequest.ts"

const encoder = new TextEncoder()
const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

type Value = boolean | number | bigint | string

/** The elements of one datatype: any of them, and a tensor's bytes of some. */
interface Kind {
  readonly value: fc.Arbitrary<Value>
  readonly bytes: (values: ReadonlyArray<Value>) => Uint8Array
}

const kind = <V extends Value>(value: fc.Arbitrary<V>, view: (values: ReadonlyArray<V>) => ArrayBufferView): Kind => ({
  value,
  bytes: (values) => {
    const { buffer, byteOffset, byteLength } = view(values as ReadonlyArray<V>)
    return new Uint8Array(buffer, byteOffset, byteLength)
  },
})

const integer = (min: number, max: number) => fc.oneof(fc.integer({ min, max }), fc.constantFrom(min, max, 0))

const long = (min: bigint, max: bigint) =>
  fc.oneof(
    fc.bigInt({ min, max }),
    fc.constantFrom(min, max, 0n, 1n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 32n, max - 1n),
  )

const specials = fc.constantFrom(Number.NaN, Infinity, -Infinity, -0, 0)

const kinds: { readonly [D in JsonDataType]: Kind } = {
  BOOL: kind(fc.boolean(), (values) => Uint8Array.from(values, Number)),
  UINT8: kind(integer(0, 0xff), (values) => Uint8Array.from(values)),
  UINT16: kind(integer(0, 0xffff), (values) => Uint16Array.from(values)),
  UINT32: kind(integer(0, 0xffff_ffff), (values) => Uint32Array.from(values)),
  UINT64: kind(long(0n, 2n ** 64n - 1n), (values) => BigUint64Array.from(values)),
  INT8: kind(integer(-0x80, 0x7f), (values) => Int8Array.from(values)),
  INT16: kind(integer(-0x8000, 0x7fff), (values) => Int16Array.from(values)),
  INT32: kind(integer(-0x8000_0000, 0x7fff_ffff), (values) => Int32Array.from(values)),
  INT64: kind(long(-(2n ** 63n), 2n ** 63n - 1n), (values) => BigInt64Array.from(values)),
  FP32: kind(fc.oneof(fc.float(), specials), (values) => Float32Array.from(values)),
  FP64: kind(fc.oneof(fc.double(), specials), (values) => Float64Array.from(values)),
  BYTES: kind(fc.string({ unit: "binary" }), (values) => encodeElements(values.map((text) => encoder.encode(text)))),
}

const datatypes = (Object.keys(kinds) as Array<JsonDataType>).map((datatype) => ({ datatype, ...kinds[datatype] }))

/** Of any rank from 0 to 4, with and without elements. */
const shapes = fc.array(fc.nat(3), { maxLength: 4 })

const valuesAndShape = ({ value }: Kind) =>
  shapes.chain((shape) => {
    const length = elementCount(shape)
    return fc.record({ shape: fc.constant(shape), values: fc.array(value, { minLength: length, maxLength: length }) })
  })

const text = (value: Value): string =>
  typeof value === "string" ? JSON.stringify(value) : Object.is(value, -0) ? "-0" : String(value)

/** As deep as the shape; at least an array. */
const nested = (texts: ReadonlyArray<string>, [extent, ...rest]: ReadonlyArray<number>): string => {
  if (extent === undefined) return `[${texts.join()}]`
  if (rest.length === 0) return `[${texts.join(" , ")}]`
  const each = elementCount(rest)
  return `[${Array.from({ length: extent }, (_, index) => nested(texts.slice(index * each, (index + 1) * each), rest)).join()}]`
}

const decoded = (datatype: string, shape: ReadonlyArray<number>, data: string) => {
  const document = `{"inputs":[{"name":"X","shape":[${shape.join()}],"datatype":"${datatype}","data":${data}}]}`
  return Result.getOrThrow(readRequest(encoder.encode(document))).inputs[0]?.content
}

const response = (outputs: ReadonlyArray<WireTensor>) => {
  const document = { modelName: "m", modelVersion: "1", id: "", parameters: {}, outputs }
  return Result.getOrThrow(writeResponse(document, []))
}

describe.each(datatypes)("$datatype", ({ datatype, ...kind }) => {
  it("flat and nested data are read as the same bytes, the ones that were meant", () => {
    fc.assert(
      fc.property(valuesAndShape(kind), ({ shape, values }) => {
        const bytes = kind.bytes(values)
        const texts = values.map(text)
        assert.deepStrictEqual(decoded(datatype, shape, `[${texts.join()}]`), bytes)
        assert.deepStrictEqual(decoded(datatype, shape, nested(texts, shape)), bytes)
      }),
    )
  })

  it("decode after encode is the identity", () => {
    fc.assert(
      fc.property(fc.array(valuesAndShape(kind), { maxLength: 3 }), (tensors) => {
        const outputs = tensors.map(({ shape, values }, index) => ({
          name: `Y${index}`,
          datatype,
          shape,
          bytes: kind.bytes(values),
        }))
        const read = Result.getOrThrow(readResponse(response(outputs)))
        assert.deepStrictEqual(
          read.outputs,
          outputs.map(({ bytes, ...tensor }) => ({ ...tensor, content: bytes })),
        )
      }),
    )
  })

  it("encode after decode is the identity on what was encoded", () => {
    fc.assert(
      fc.property(valuesAndShape(kind), ({ shape, values }) => {
        const written = response([{ name: "Y", datatype, shape, bytes: kind.bytes(values) }])
        const { outputs } = Result.getOrThrow(readResponse(written))
        const repeated = outputs.map(({ content, ...tensor }) => {
          assert(content instanceof Uint8Array)
          return { ...tensor, bytes: content }
        })
        assert.strictEqual(decoder.decode(response(repeated)), decoder.decode(written))
      }),
    )
  })
})

it("FP64: written with the fewest digits that read back, which are JavaScript's own", () => {
  fc.assert(
    fc.property(fc.array(fc.double({ noNaN: true, noDefaultInfinity: true }), { minLength: 1 }), (values) => {
      const bytes = kinds.FP64.bytes(values)
      const written = decoder.decode(response([{ name: "Y", datatype: "FP64", shape: [values.length], bytes }]))
      const expected = values.map((value) => (Object.is(value, -0) ? "-0.0" : String(value))).join()
      assert.include(written, `"data":[${expected}]`)
    }),
  )
})

describe("documents", () => {
  /** Datatypes that JSON.parse reads without loss. */
  const parsable = ["BOOL", "UINT8", "UINT16", "UINT32", "INT8", "INT16", "INT32", "FP64", "BYTES"] as const
  const finite = {
    ...kinds,
    FP64: kind(fc.double({ noNaN: true, noDefaultInfinity: true }), (values) => Float64Array.from(values)),
  }
  const input = fc.constantFrom(...parsable).chain((datatype) =>
    fc.record({
      name: fc.string({ unit: "binary" }),
      datatype: fc.constant<string>(datatype),
      tensor: valuesAndShape(finite[datatype]),
    }),
  )
  const request = fc.record({
    id: fc.string({ unit: "binary" }),
    inputs: fc.array(input, { maxLength: 4 }),
    outputs: fc.array(fc.string({ unit: "binary" }), { maxLength: 4 }),
    parameters: fc.dictionary(fc.stringMatching(/^p[a-z]*$/), fc.oneof(fc.boolean(), fc.string({ unit: "binary" }))),
    other: fc.jsonValue(),
    /** Which member comes first, and how it is laid out. */
    turn: fc.nat(4),
    indent: fc.constantFrom(0, 1, "\t"),
    isNested: fc.boolean(),
  })

  it("a request is what JSON.parse makes of it, in any order and layout", () => {
    fc.assert(
      fc.property(request, ({ id, inputs, outputs, parameters, other, turn, indent, isNested }) => {
        const members = Object.entries({
          other,
          id,
          parameters,
          inputs: inputs.map(({ tensor: { shape, values }, ...rest }) => {
            const data: unknown = isNested ? JSON.parse(nested(values.map(text), shape)) : values
            return turn % 2 === 0 ? { ...rest, shape, data } : { data, other, shape, ...rest }
          }),
          outputs: outputs.map((name) => ({ name, other })),
        })
        const json = JSON.stringify(
          Object.fromEntries([...members.slice(turn), ...members.slice(0, turn)]),
          null,
          indent,
        )
        const read = Result.getOrThrow(readRequest(encoder.encode(json)))
        const parsed = JSON.parse(json) as {
          readonly id: string
          readonly parameters: object
          readonly inputs: ReadonlyArray<{ name: string; datatype: string; shape: Array<number>; data: Array<unknown> }>
          readonly outputs: ReadonlyArray<{ name: string }>
        }
        assert.deepStrictEqual([read.id, read.parameters], [parsed.id, { ...parsed.parameters }])
        assert.deepStrictEqual(
          read.outputs.map(({ name }) => name),
          parsed.outputs.map(({ name }) => name),
        )
        assert.deepStrictEqual(
          read.inputs.map(({ name, datatype, shape, content }) => {
            assert(content instanceof Uint8Array && isDataType(datatype))
            const tensor = new TypedTensor(datatype, shape, content)
            return { name, datatype: String(datatype), shape: [...shape], data: values(tensor) }
          }),
          parsed.inputs.map(({ name, datatype, shape, data }) => ({ name, datatype, shape, data: data.flat(10) })),
        )
      }),
    )
  })
})

/** As JSON has them. */
const values = ({ datatype, data }: TypedTensor): ReadonlyArray<unknown> => {
  const elements: Iterable<unknown> = data
  if (datatype === "BOOL") return Array.from(elements, (element) => element === 1)
  return Array.from(elements, (element) => (element instanceof Uint8Array ? decoder.decode(element) : element))
}
