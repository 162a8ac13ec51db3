/**
 * Messages are read as Google's libraries read them. The expected values were observed with protobuf 7.36 for Python,
 * and for parameters with the C++ library in Triton 2.51.
 */
import { create, type DescMessage, type MessageInitShape, toBinary, toJson } from "@bufbuild/protobuf"
import { expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { type InferTensorContentsSchema, ModelInferRequestSchema } from "@nereid/protocol/grpc_service"
import { ModelConfigResponseSchema, SystemSharedMemoryRegisterRequestSchema } from "@nereid/protocol/grpc_service"
import * as GeneralMessage from "./GeneralMessage.ts"
import * as KnownFields from "./KnownFields.ts"

const read = <Desc extends DescMessage>(schema: Desc, bytes: ReadonlyArray<number>) =>
  toJson(schema, GeneralMessage.read(schema, Uint8Array.from(bytes)), { useProtoFieldName: true })

const request = (bytes: ReadonlyArray<number>) => read(ModelInferRequestSchema, bytes)

const many = (count: number, byte: number) => Array.from({ length: count }, () => byte)

/** A parameter: its map entry as a field. */
const parameter = (...entry: ReadonlyArray<number>) => [0x22, entry.length, ...entry]

/** An input with the contents of these bytes. */
const contents = (...bytes: ReadonlyArray<number>) => [0x2a, bytes.length + 2, 0x2a, bytes.length, ...bytes]

const version = [0x12, 1, 0x31]

it.each<[string, ReadonlyArray<number>, object]>([
  ["a name as a varint", [0x08, 5, ...version], { model_version: "1" }],
  ["a name as four bytes", [0x0d, 1, 2, 3, 4, ...version], { model_version: "1" }],
  ["a name as eight bytes", [0x09, 1, 2, 3, 4, 5, 6, 7, 8, ...version], { model_version: "1" }],
  ["a name as a group", [0x0b, ...version, 0x0c], {}],
  ["a name, and again as a varint", [0x0a, 1, 0x41, 0x08, 5], { model_name: "A" }],
  ["an input as a varint", [0x28, 5], {}],
  ["parameters as a varint", [0x20, 1], {}],
  ["raw contents as a varint", [0x38, 3], {}],
  ["a shape as eight bytes", [0x2a, 9, 0x19, 1, ...many(7, 0)], { inputs: [{}] }],
  ["a shape as four bytes, and packed", [0x2a, 8, 0x1d, 1, 0, 0, 0, 0x1a, 1, 7], { inputs: [{ shape: ["7"] }] }],
  ["a shape that is not packed", [0x2a, 2, 0x18, 5], { inputs: [{ shape: ["5"] }] }],
  ["floats as a varint", contents(0x30, 3), { inputs: [{ contents: {} }] }],
  ["floats as eight bytes", contents(0x31, ...many(8, 1)), { inputs: [{ contents: {} }] }],
  ["floats that are not packed", contents(0x35, 0, 0, 0x80, 0x3f), { inputs: [{ contents: { fp32_contents: [1] } }] }],
  ["bytes as a varint", contents(0x40, 3), { inputs: [{ contents: {} }] }],
  [
    "integers of more than 32 bits",
    contents(0x12, 5, 0x85, 0x80, 0x80, 0x80, 0x10),
    { inputs: [{ contents: { int_contents: [5] } }] },
  ],
  [
    "a parameter's name as a varint",
    parameter(0x08, 1, 0x12, 2, 0x08, 1),
    { parameters: { "": { bool_param: true } } },
  ],
  ["a parameter's value as a varint", parameter(0x0a, 1, 0x41, 0x10, 1), { parameters: { A: {} } }],
  [
    "an unknown field of a parameter",
    parameter(0x0a, 1, 0x41, 0x12, 2, 0x08, 1, 0x18, 5),
    { parameters: { A: { bool_param: true } } },
  ],
  ["a boolean as eight bytes", parameter(0x0a, 1, 0x41, 0x12, 9, 0x09, 1, ...many(7, 0)), { parameters: { A: {} } }],
  [
    "a boolean, and again as eight bytes",
    parameter(0x0a, 1, 0x41, 0x12, 11, 0x08, 1, 0x09, ...many(8, 0)),
    { parameters: { A: { bool_param: true } } },
  ],
  ["a double as a varint", parameter(0x0a, 1, 0x41, 0x12, 2, 0x20, 2), { parameters: { A: {} } }],
  ["an empty parameter", parameter(), { parameters: { "": {} } }],
  ["an unknown group", [0x7b, 0x08, 1, 0x7c], {}],
  ["an unknown string that is not UTF-8", [0x7a, 1, 0xff], {}],
  ["a tag of five bytes", [0x8a, 0x80, 0x80, 0x80, 0x00, 1, 0x41], { model_name: "A" }],
  ["a length of five bytes", [0x0a, 0x81, 0x80, 0x80, 0x80, 0x00, 0x41], { model_name: "A" }],
])("%s is ignored, or read as Google's libraries read it", (_, bytes, expected) => {
  expect(request(bytes)).toEqual(expected)
})

it("fields of wrong types leave all others of a control request", () => {
  const schema = SystemSharedMemoryRegisterRequestSchema
  expect(read(schema, [0x1a, 1, 5, 0x20, 4])).toEqual({ byte_size: "4" })
  expect(read(schema, [0x08, 1, 0x12, 1, 0x61, 0x19, ...many(8, 1), 0x18, 3])).toEqual({ key: "a", offset: "3" })
})

it.each<[string, ReadonlyArray<number>]>([
  ["a name that is not UTF-8", [0x0a, 1, 0xff]],
  ["a surrogate", [0x0a, 3, 0xed, 0xa0, 0x80]],
  ["a parameter's name that is not UTF-8", parameter(0x0a, 1, 0xff)],
  ["a parameter that is not UTF-8", parameter(0x0a, 1, 0x41, 0x12, 3, 0x1a, 1, 0xff)],
  ["wire type 6", [0x0e, 1]],
  ["wire type 7", [0x0f, 1]],
  ["an end of no group", [0x0c]],
  ["a group without an end", [0x0b, 0x12, 1, 0x31]],
  ["a group with another's end", [0x7b, 0x08, 1, 0x74]],
  ["field 0", [0x02, 0]],
  ["a zero", [0x00]],
  ["a length beyond the message", [0x0a, 5, 0x41]],
  ["an input whose name ends behind it", [0x2a, 3, 0x0a, 5, ...many(5, 0x41)]],
  ["a shape that ends behind its input", [0x2a, 3, 0x1a, 1, 0x80, 0x12, 1]],
  ["a packed shape that is incomplete", [0x2a, 3, 0x1a, 1, 0x80]],
  ["packed floats that are incomplete", contents(0x32, 5, 0, 0, 0, 0, 0)],
  ["an integer of eleven bytes", parameter(0x0a, 1, 0x41, 0x12, 12, 0x10, ...many(10, 0xff), 1)],
  ["a tag of six bytes", [0x8a, 0x80, 0x80, 0x80, 0x80, 0x00, 1, 0x41]],
  ["a tag of more than 32 bits", [0x8a, 0x80, 0x80, 0x80, 0x70, 1, 0x41]],
  ["a length of six bytes", [0x0a, 0x81, 0x80, 0x80, 0x80, 0x80, 0x00, 0x41]],
  ["101 groups within each other", [...many(101, 0x7b), ...many(101, 0x7c)]],
  ["a number without an end", [0x78, ...many(100, 0xff)]],
])("%s is an error", (_, bytes) => {
  expect(() => request(bytes)).toThrow()
})

it("names the problem and its place", () => {
  expect(() => request([0x0a, 5, 0x41])).toThrow("length 5, where 1 bytes are left, at byte 2")
  expect(() => request([0x12, 1, 0x31, 0x0e])).toThrow("wire type 6 of field 1, at byte 4")
})

it("a message without such fields is not copied", () => {
  const typed: MessageInitShape<typeof InferTensorContentsSchema> = { fp64Contents: [1, 2], boolContents: [true] }
  const bytes = toBinary(
    ModelInferRequestSchema,
    create(ModelInferRequestSchema, { inputs: [{ name: "X", shape: [1n, -1n], contents: typed }] }),
  )
  expect(KnownFields.select(ModelInferRequestSchema, bytes)).toBe(bytes)
})

it("a nested message of more than one length byte keeps its other fields", () => {
  const name = "n".repeat(300)
  const config = create(ModelConfigResponseSchema, { config: { name, input: [{ name, dims: [1n, 300n] }] } })
  const bytes = toBinary(ModelConfigResponseSchema, config)
  // The configuration is the only field of the response; its name comes first, and again as a varint.
  const start = bytes.length - ((bytes[1] ?? 0) % 0x80) - (bytes[2] ?? 0) * 0x80
  const inner = [...bytes.subarray(start), 0x08, 1]
  const changed = [0x0a, (inner.length % 0x80) | 0x80, inner.length >> 7, ...inner]
  expect(GeneralMessage.read(ModelConfigResponseSchema, Uint8Array.from(changed))).toEqual(config)
})

it("fields are removed at any depth and place, as a message that never had them", () => {
  const field = (number: number, ...bytes: ReadonlyArray<number>) => [number * 8 + 2, bytes.length, ...bytes]
  const wrong = fc.constantFrom([], [], [0x08, 5], [0x0d, 1, 2, 3, 4], [0x0b, 0x0c], [0x08, 1, 0x08, 2])
  const message = fc.array(wrong, { minLength: 8, maxLength: 8 }).map((parts) => {
    const build = ([a = [], b = [], c = [], d = [], e = [], f = [], g = [], h = []]: ReadonlyArray<
      ReadonlyArray<number>
    >) => [
      ...a,
      ...field(1, 0x6d),
      ...b,
      ...field(4, ...c, ...field(1, 0x70), ...field(2, ...d, 0x10, 7)),
      ...field(5, ...e, ...field(1, 0x58), ...field(3, 1, 2), ...f),
      ...g,
      ...field(3, 0x69),
      ...h,
    ]
    return { changed: build(parts), plain: build([]) }
  })
  fc.assert(fc.property(message, ({ changed, plain }) => void expect(request(changed)).toEqual(request(plain))))
})

it("many fields of wrong types take no memory but a copy", () => {
  const bytes = new Uint8Array(4_000_000).fill(0x08)
  for (let index = 1; index < bytes.length; index += 4) bytes.set([1, 0x12, 0], index)
  const selected = KnownFields.select(ModelInferRequestSchema, bytes)
  expect(selected.length).toBe(bytes.length / 2)
  expect(selected.subarray(0, 4)).toEqual(Uint8Array.of(0x12, 0, 0x12, 0))
})

it("any bytes are read or refused", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      try {
        GeneralMessage.read(ModelInferRequestSchema, bytes)
      } catch (error) {
        expect(error).toBeInstanceOf(Error)
      }
    }),
    { numRuns: 3000 },
  )
})
