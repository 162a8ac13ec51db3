import { expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { type Field, isPlain, spec } from "./Field.ts"
import * as Tensor from "../Tensor.ts"

const text = (value: string) => new TextEncoder().encode(value)

it("derives the spec through transformations, checks and optional keys", () => {
  expect(spec("x", Tensor.FP32("n", -1, 3))).toEqual({
    name: "x",
    datatype: "FP32",
    dims: ["n", -1, 3],
    optional: false,
    form: "tensor",
  })
  expect(spec("x", Tensor.utf8())).toMatchObject({ datatype: "BYTES", dims: [1], form: "utf8" })
  expect(spec("x", Tensor.utf8().check(Schema.isMinLength(2)))).toMatchObject({ datatype: "BYTES", form: "utf8" })
  expect(spec("x", Tensor.json(Schema.Struct({ a: Schema.Number })))).toMatchObject({ datatype: "BYTES", form: "json" })
  expect(spec("x", Tensor.optional(Tensor.scalar("INT64")))).toMatchObject({ optional: true, form: "scalar" })
  expect(spec("x", Tensor.labels(["a", "b"]))).toMatchObject({ datatype: "INT32", dims: [1], labels: ["a", "b"] })
})

it("has the example of a Schema for a field of one BYTES element, encoded", () => {
  const example = (field: Field) => {
    const bytes = spec("x", field).example?.()
    return bytes === undefined ? undefined : new TextDecoder().decode(bytes)
  }
  expect(example(Tensor.utf8())).toBeUndefined()
  expect(example(Tensor.utf8().annotate({ examples: ["hello", "you"] }))).toBe("hello")
  expect(
    example(
      Tensor.optional(
        Tensor.utf8()
          .check(Schema.isMinLength(2))
          .annotate({ examples: ["ab"] }),
      ),
    ),
  ).toBe("ab")
  const json = Tensor.json(Schema.Struct({ a: Schema.Number }))
  expect(example(json)).toBe('{"a":1}')
  expect(example(json.annotate({ examples: [{ a: 5 }] }))).toBe('{"a":5}')
  expect(example(Tensor.scalar("FP32").annotate({ examples: [5] }))).toBeUndefined()
  expect(() =>
    spec(
      "x",
      Tensor.utf8()
        .check(Schema.isMinLength(2))
        .annotate({ examples: ["a"] }),
    ),
  ).toThrow('The example of field "x" does not fit it: ')
})

it("takes a datatype by the names of the protocol, of Triton's configurations and of numpy", () => {
  for (const name of ["FP32", "TYPE_FP32", "float32", "single"] as const) {
    expect(spec("x", Tensor.of(name, "n", 3))).toEqual(spec("x", Tensor.FP32("n", 3)))
  }
  expect(spec("x", Tensor.of("TYPE_STRING", 1)).datatype).toBe("BYTES")
  expect(spec("x", Tensor.of("object", 1)).datatype).toBe("BYTES")
  const same: ReturnType<typeof Tensor.INT64<readonly [2]>> = Tensor.of("int64", 2)
  // @ts-expect-error: of another datatype.
  const other: ReturnType<typeof Tensor.INT32<readonly [2]>> = Tensor.of("int64", 2)
  expect(same.ast.annotations).toMatchObject(other.ast.annotations ?? {})
  // @ts-expect-error: the protocol has no complex numbers.
  expect(() => Tensor.of("complex64", 1)).toThrow('"complex64" is not a datatype; expected one of BOOL, ')
  // @ts-expect-error: properties of every object are not names.
  expect(() => Tensor.of("toString", 1)).toThrow("is not a datatype")
})

it("calls Schema only if a field needs it", () => {
  expect(isPlain(Tensor.FP32(3))).toBe(true)
  expect(isPlain(Tensor.optional(Tensor.FP32(3)))).toBe(true)
  expect(isPlain(Tensor.FP32(3).check(Schema.makeFilter(() => true)))).toBe(false)
  expect(isPlain(Tensor.utf8())).toBe(false)
})

it("maps text, and refuses bytes that are not UTF-8", () => {
  const field = Tensor.utf8()
  const tensor = Schema.encodeUnknownSync(field)("schön")
  expect(tensor.data).toEqual([text("schön")])
  expect(Schema.decodeUnknownSync(field)(tensor)).toBe("schön")
  expect(() => Schema.decodeUnknownSync(field)(Tensor.make("BYTES", [1], [Uint8Array.of(0xff)]))).toThrow("UTF-8")
})

it("keeps every character of a text, and refuses what has no UTF-8", () => {
  const field = Tensor.utf8()
  const marked = "\uFEFFhi\0"
  expect(Schema.decodeUnknownSync(field)(Schema.encodeUnknownSync(field)(marked))).toBe(marked)
  expect(() => Schema.encodeUnknownSync(field)("\ud800")).toThrow("half surrogate")
})

it("maps scalars of every width, and refuses what does not fit", () => {
  const roundTrip = <T, E>(field: Schema.Codec<T, E>, value: T) =>
    Schema.decodeUnknownSync(field)(Schema.encodeUnknownSync(field)(value))
  expect(roundTrip(Tensor.scalar("BOOL"), true)).toBe(true)
  expect(roundTrip(Tensor.scalar("UINT8"), 255)).toBe(255)
  expect(roundTrip(Tensor.scalar("INT64"), -(2n ** 63n))).toBe(-(2n ** 63n))
  expect(roundTrip(Tensor.scalar("FP32"), 0.1)).toBe(Math.fround(0.1))
  expect(roundTrip(Tensor.scalar("FP64"), Number.NaN)).toBeNaN()
  for (const [field, value] of [
    [Tensor.scalar("UINT8"), 256],
    [Tensor.scalar("UINT8"), -1],
    [Tensor.scalar("INT32"), 1.5],
    [Tensor.scalar("INT16"), Number.NaN],
    [Tensor.scalar("UINT64"), 2n ** 64n],
  ] as const) {
    expect(() => Schema.encodeUnknownSync(field)(value), String(value)).toThrow("can hold")
  }
})

it("maps labels to their index, and refuses an invalid index", () => {
  const field = Tensor.labels(["negative", "positive"])
  expect([...Schema.encodeUnknownSync(field)("positive").data]).toEqual([1])
  expect(Schema.decodeUnknownSync(field)(Tensor.make("INT32", [1], Int32Array.of(0)))).toBe("negative")
  for (const index of [-1, 2]) {
    const tensor = Tensor.make("INT32", [1], Int32Array.of(index))
    expect(() => Schema.decodeUnknownSync(field)(tensor)).toThrow("expected an index of 2 labels")
  }
})

it("maps JSON through the Schema's own encoding", () => {
  const field = Tensor.json(Schema.Struct({ at: Schema.Date }))
  const value = { at: new Date(0) }
  expect(Schema.decodeUnknownSync(field)(Schema.encodeUnknownSync(field)(value))).toEqual(value)
  expect(() => Schema.decodeUnknownSync(field)(Tensor.make("BYTES", [1], [text("{")]))).toThrow()
})
