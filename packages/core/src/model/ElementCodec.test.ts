/** Codecs of single elements agree with the Schemas of their fields, or leave a value to them. */
import { describe, expect, it } from "vitest"
import { Effect, Exit, Result, Schema, SchemaTransformation } from "effect"
import * as Tensor from "../Tensor.ts"
import { TypedTensor } from "../tensor/TypedTensor.ts"
import * as ElementCodec from "./ElementCodec.ts"
import { type Field, spec } from "./Field.ts"
import * as SampleCodec from "./SampleCodec.ts"

const fields: Readonly<Record<string, Field>> = {
  utf8: Tensor.utf8(),
  BOOL: Tensor.scalar("BOOL"),
  UINT8: Tensor.scalar("UINT8"),
  UINT16: Tensor.scalar("UINT16"),
  UINT32: Tensor.scalar("UINT32"),
  UINT64: Tensor.scalar("UINT64"),
  INT8: Tensor.scalar("INT8"),
  INT16: Tensor.scalar("INT16"),
  INT32: Tensor.scalar("INT32"),
  INT64: Tensor.scalar("INT64"),
  FP32: Tensor.scalar("FP32"),
  FP64: Tensor.scalar("FP64"),
  labels: Tensor.labels(["no", "yes"]),
  "short utf8": Tensor.utf8().check(Schema.isMaxLength(33)),
  "positive FP32": Tensor.scalar("FP32").check(Schema.isGreaterThan(0)),
}

const texts = [
  "",
  "a",
  "no",
  "yes",
  "schön",
  "\u{1f600}",
  "\ud800",
  "a".repeat(32),
  "a".repeat(33),
  "\0\x7f",
  "ö".repeat(33),
  "\ufeffa",
]
const numbers = [0, -0, 1, -1, 1.5, 127, 128, 255, 256, 32767, 65536, 2 ** 31, 2 ** 32, 1e300, Number.NaN, Infinity]
const integers = [0n, 1n, -1n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n]
const values: ReadonlyArray<unknown> = [...texts, ...numbers, ...integers, true, false, null, undefined, [], {}]

const tensors = [
  ...values.flatMap((value) =>
    Object.values(fields).flatMap((field) => {
      const exit = Schema.encodeUnknownExit(codecOf(field))(value)
      return Exit.isSuccess(exit) && exit.value instanceof TypedTensor ? [exit.value] : []
    }),
  ),
  new TypedTensor("BYTES", [1], Uint8Array.of(1, 0, 0, 0, 0xff)),
  new TypedTensor("BYTES", [1], Uint8Array.of(2, 0, 0, 0, 97)),
  new TypedTensor("BYTES", [2], Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0)),
  new TypedTensor("INT32", [1], Uint8Array.of(9, 0, 0, 0)),
  new TypedTensor("INT32", [1, 1], Uint8Array.of(1, 0, 0, 0)),
  new TypedTensor("INT32", [2], Uint8Array.of(1, 0, 0, 0, 1, 0, 0, 0)),
  new TypedTensor("INT32", [1], Uint8Array.of(9, 1, 0, 0, 0).subarray(1)),
]

function codecOf(field: Field): Schema.Codec<unknown, unknown> {
  return field as Field & Schema.Codec<unknown, unknown>
}

describe.each(Object.entries(fields))("%s", (_, field) => {
  const codec = ElementCodec.make(field)

  it("makes the tensors that the Schema makes, or leaves the value to it", () => {
    let count = 0
    for (const value of values) {
      const tensor = codec?.encode(value, [1])
      if (tensor === undefined) continue
      count += 1
      const expected = Schema.encodeUnknownSync(codecOf(field))(value)
      expect(expected).toBeInstanceOf(TypedTensor)
      if (!(expected instanceof TypedTensor)) continue
      expect([tensor.datatype, tensor.shape, [...tensor.bytes]]).toEqual([
        expected.datatype,
        expected.shape,
        [...expected.bytes],
      ])
    }
    expect(count).toBeGreaterThan(1)
  })

  it("reads what the Schema reads, or leaves the tensor to it", () => {
    let count = 0
    for (const tensor of tensors) {
      const value = codec?.decode(tensor)
      if (value === undefined) continue
      count += 1
      expect(value).toBe(Schema.decodeUnknownSync(codecOf(field))(tensor))
    }
    expect(count).toBeGreaterThan(1)
  })
})

it("fields that change their values are left to their Schemas", () => {
  const absent = Effect.succeed(Tensor.make("BYTES", [1], [new Uint8Array(1)]))
  const trimmed = SchemaTransformation.transform({ decode: (text: string) => text.trim(), encode: (text) => text })
  for (const field of [
    Tensor.utf8().pipe(Schema.decodeTo(Schema.NumberFromString)),
    Tensor.utf8().pipe(Schema.decodeTo(Schema.String, trimmed)),
    Tensor.utf8().pipe(Schema.decodeTo(Schema.Literals(["a"]))),
    Tensor.utf8().pipe(Schema.withDecodingDefaultKey(absent)),
    Tensor.json(Schema.Number),
    Tensor.scalar("FP16"),
    Tensor.FP32(1),
  ]) {
    expect(ElementCodec.make(field)).toBeUndefined()
  }
})

it("annotated and optional fields need no Schema either", () => {
  expect(ElementCodec.make(Tensor.utf8().annotate({ description: "of a text" }))).toBeDefined()
  expect(ElementCodec.make(Tensor.optional(Tensor.scalar("INT64")))).toBeDefined()
})

it("refusals have the messages of the Schemas", () => {
  const problem = (field: Field, value: unknown) => {
    const encoded = SampleCodec.make({ X: field }, [spec("X", field)]).encode({ X: value }, true)
    return Result.isFailure(encoded) ? encoded.failure.message : undefined
  }
  expect(problem(Tensor.scalar("UINT8"), 256)).toContain("expected a value that UINT8 can hold")
  expect(problem(Tensor.scalar("INT64"), 1)).toContain("Expected bigint")
  expect(problem(Tensor.utf8().check(Schema.isMaxLength(1)), "long")).toContain("length of at most 1")
  expect(problem(Tensor.utf8(), "\ud800")).toContain("half surrogate")
  expect(problem(Tensor.labels(["no", "yes"]), "maybe")).toContain('"no" | "yes"')
})
