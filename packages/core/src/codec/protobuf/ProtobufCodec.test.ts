/** The codec against protobuf-es' own reading and writing, and the messages of its refusals. */
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf"
import { expect, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import {
  type InferTensorContentsSchema,
  ModelInferRequestSchema,
  ModelInferResponseSchema,
  type ModelInferRequest_InferInputTensorSchema as InputTensorSchema,
} from "@nereid/protocol/grpc_service"
import { all, type DataType } from "../../tensor/DataType.ts"
import * as ProtobufCodec from "./ProtobufCodec.ts"
import { encodeElements } from "../../tensor/TypedTensor.ts"
import type { WireResponse } from "../../wire/WireRequest.ts"

type RequestInit = MessageInitShape<typeof ModelInferRequestSchema>
type InputInit = MessageInitShape<typeof InputTensorSchema>
type ContentsInit = MessageInitShape<typeof InferTensorContentsSchema>

const bytesOf = (request: RequestInit) => toBinary(ModelInferRequestSchema, create(ModelInferRequestSchema, request))

const decode = (request: RequestInit) => ProtobufCodec.decode(bytesOf(request))

const failure = (request: RequestInit) => {
  const decoded = decode(request)
  return Result.isFailure(decoded) ? `${decoded.failure._tag}: ${decoded.failure.message}` : "no failure"
}

const input = (overrides: InputInit = {}): InputInit => ({ name: "X", datatype: "FP32", shape: [1n], ...overrides })

const int64 = (value: bigint) => ({ parameterChoice: { case: "int64Param" as const, value } })

it("reads everything of a request", () => {
  const decoded = decode({
    modelName: "m",
    modelVersion: "3",
    id: "r",
    parameters: {
      bool: { parameterChoice: { case: "boolParam", value: false } },
      int: { parameterChoice: { case: "int64Param", value: -(2n ** 63n) } },
      text: { parameterChoice: { case: "stringParam", value: "ü" } },
      double: { parameterChoice: { case: "doubleParam", value: 0.5 } },
      uint: { parameterChoice: { case: "uint64Param", value: 2n ** 64n - 1n } },
    },
    inputs: [input({ shape: [-1n, 2n] })],
    outputs: [{ name: "Y" }, { name: "Z", parameters: { classification: int64(3n) } }],
    rawInputContents: [new Uint8Array([1, 2, 3])],
  })
  expect(Result.getOrThrow(decoded)).toEqual({
    modelName: "m",
    modelVersion: "3",
    id: "r",
    parameters: { bool: false, int: -(2n ** 63n), text: "ü", double: 0.5, uint: 2n ** 64n - 1n },
    inputs: [{ name: "X", datatype: "FP32", shape: [-1, 2], bytes: new Uint8Array([1, 2, 3]) }],
    outputs: [
      { name: "Y", binary: undefined },
      { name: "Z", binary: undefined, classification: 3 },
    ],
  })
})

it("leaves raw tensors where they are", () => {
  const bytes = bytesOf({ inputs: [input()], rawInputContents: [new Uint8Array([1, 2, 3, 4])] })
  const [tensor] = Result.getOrThrow(ProtobufCodec.decode(bytes)).inputs
  expect(tensor?.bytes.buffer).toBe(bytes.buffer)
})

it("keeps a parameter called __proto__ a parameter", () => {
  // { "__proto__": { string_param: "x" } }, as a client that is not JavaScript writes it.
  const entry = [0x0a, 9, ...Buffer.from("__proto__"), 0x12, 3, 0x1a, 1, 0x78]
  const decoded = Result.getOrThrow(ProtobufCodec.decode(new Uint8Array([0x22, entry.length, ...entry])))
  expect(Object.getPrototypeOf(decoded.parameters)).toBe(Object.prototype)
  expect(({} as Record<string, unknown>)["parameterChoice"]).toBeUndefined()
})

const text = (value: string) => ({ parameterChoice: { case: "stringParam" as const, value } })

const integer = (value: bigint) => ({ parameterChoice: { case: "int64Param" as const, value } })

const region = { shared_memory_region: text("r"), shared_memory_byte_size: integer(4n) }

it("reads references into regions, beside raw tensors", () => {
  const offset = { parameterChoice: { case: "uint64Param" as const, value: 8n } }
  const decoded = ProtobufCodec.decode(
    bytesOf({
      inputs: [input({ parameters: region }), input({ name: "Y" }), input({ name: "Z", parameters: region })],
      outputs: [{ name: "R", parameters: { ...region, shared_memory_offset: offset } }],
      rawInputContents: [new Uint8Array([1, 2, 3, 4])],
    }),
  )
  const { inputs, outputs } = Result.getOrThrow(decoded)
  const reference = { name: "r", byteSize: 4, offset: 0 }
  expect(inputs.map((tensor) => [tensor.name, tensor.bytes.length, tensor.region])).toEqual([
    ["X", 0, reference],
    ["Y", 4, undefined],
    ["Z", 0, reference],
  ])
  expect(outputs).toEqual([{ name: "R", binary: undefined, region: { ...reference, offset: 8 } }])
})

it.each<[string, RequestInit, string]>([
  [
    "contents beside raw_input_contents",
    { inputs: [input({ contents: { fp32Contents: [1] } })], rawInputContents: [new Uint8Array(4)] },
    "InvalidRequest: contents field must not be specified when using raw_input_contents for 'X' for model 'm'",
  ],
  [
    "no data",
    { inputs: [input()] },
    "InvalidRequest: unable to find data for input tensor 'X' for model 'm' in request.",
  ],
  [
    "contents of another type",
    { inputs: [input({ contents: { intContents: [1] } })] },
    "InvalidRequest: unexpected explicit tensor data for input tensor 'X' for model 'm' of type 'INT32', expected datatype 'FP32'",
  ],
  [
    "contents of two types",
    { inputs: [input({ contents: { fp32Contents: [1], bytesContents: [new Uint8Array(1)] } })] },
    "InvalidRequest: unexpected explicit tensor data for input tensor 'X' for model 'm' of type 'BYTES', expected datatype 'FP32'",
  ],
  [
    "contents for a type that is raw only",
    { inputs: [input({ datatype: "FP16", contents: { fp32Contents: [1] } })] },
    "InvalidRequest: unexpected explicit tensor data for input tensor 'X' for model 'm' of type 'FP32', expected datatype 'FP16'",
  ],
  [
    "fewer raw_input_contents than inputs",
    { inputs: [input(), input({ name: "Y" })], rawInputContents: [new Uint8Array(4)] },
    "InvalidRequest: unable to find data for input tensor 'Y' for model 'm' in request.",
  ],
  [
    "more raw_input_contents than inputs",
    { inputs: [input()], rawInputContents: [new Uint8Array(4), new Uint8Array(4)] },
    "InvalidRequest: expected raw_input_contents of 1 inputs for model 'm', got 2",
  ],
  [
    "an extent that no number holds",
    { inputs: [input({ shape: [2n ** 63n - 1n] })], rawInputContents: [new Uint8Array(4)] },
    "InvalidRequest: input 'X' for model 'm' has the extent 9223372036854775807 in its shape, at most 9007199254740991 is possible",
  ],
  [
    "a parameter without a value",
    { parameters: { p: {} } },
    "InvalidRequest: invalid value type for 'p' parameter, expected bool_param, int64_param, uint64_param, " +
      "double_param or string_param.",
  ],
  [
    "an input in a region of no size",
    { inputs: [input({ parameters: { shared_memory_region: text("r") } })] },
    "InvalidRequest: 'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter",
  ],
  [
    "an input with an offset into no region",
    { inputs: [input({ parameters: { shared_memory_offset: integer(4n) } })] },
    "InvalidRequest: 'shared_memory_offset' can not be specified without 'shared_memory_region' parameter",
  ],
  [
    "an output with the size of no region",
    { outputs: [{ name: "Y", parameters: { shared_memory_byte_size: integer(4n) } }] },
    "InvalidRequest: 'shared_memory_byte_size' can not be specified without 'shared_memory_region' parameter",
  ],
  [
    "a region whose name is no string",
    { inputs: [input({ parameters: { shared_memory_region: integer(1n) } })] },
    "InvalidRequest: invalid value type for 'shared_memory_region' parameter, expected string_param",
  ],
  [
    "a region whose size is no integer",
    { inputs: [input({ parameters: { shared_memory_region: text("r"), shared_memory_byte_size: text("4") } })] },
    "InvalidRequest: invalid value type for 'shared_memory_byte_size' parameter, expected int64_param",
  ],
  [
    "a negative offset into a region",
    { inputs: [input({ parameters: { ...region, shared_memory_offset: integer(-1n) } })] },
    "InvalidRequest: invalid value -1 for 'shared_memory_offset' parameter, expected 0 or more",
  ],
  [
    "contents of an input in a region",
    { inputs: [input({ contents: { fp32Contents: [1] }, parameters: region })] },
    "InvalidRequest: unexpected 'content' provided when using shared memory for input tensor 'X' for model 'm'",
  ],
  [
    "raw_input_contents of an input in a region",
    { inputs: [input({ parameters: region })], rawInputContents: [new Uint8Array(4)] },
    "InvalidRequest: expected raw_input_contents of 0 inputs for model 'm', got 1",
  ],
  [
    "class results in a region",
    { outputs: [{ name: "Y", parameters: { ...region, classification: integer(1n) } }] },
    "InvalidRequest: Output can't set both 'shared_memory_region' and 'classification'",
  ],
  [
    "a classification that is no int64",
    {
      outputs: [{ name: "Y", parameters: { classification: { parameterChoice: { case: "uint64Param", value: 3n } } } }],
    },
    "InvalidRequest: invalid value type for 'classification' parameter, expected int64_param",
  ],
])("refuses %s", (_, request, expected) => {
  expect(failure({ modelName: "m", ...request })).toBe(expected)
})

/** The datatypes that have contents. */
type ContentsDataType = Exclude<DataType, "FP16" | "BF16">

/** Elements of a datatype, as contents and as bytes. */
const samples: { readonly [D in ContentsDataType]: fc.Arbitrary<readonly [ContentsInit, ArrayBufferView]> } = {
  BOOL: fc.array(fc.boolean()).map((v) => [{ boolContents: v }, Uint8Array.from(v, Number)] as const),
  INT8: fc.int8Array().map((v) => [{ intContents: [...v] }, v] as const),
  INT16: fc.int16Array().map((v) => [{ intContents: [...v] }, v] as const),
  INT32: fc.int32Array().map((v) => [{ intContents: [...v] }, v] as const),
  INT64: fc.bigInt64Array().map((v) => [{ int64Contents: [...v] }, v] as const),
  UINT8: fc.uint8Array().map((v) => [{ uintContents: [...v] }, v] as const),
  UINT16: fc.uint16Array().map((v) => [{ uintContents: [...v] }, v] as const),
  UINT32: fc.uint32Array().map((v) => [{ uintContents: [...v] }, v] as const),
  UINT64: fc.bigUint64Array().map((v) => [{ uint64Contents: [...v] }, v] as const),
  FP32: fc.float32Array().map((v) => [{ fp32Contents: [...v] }, v] as const),
  FP64: fc.float64Array().map((v) => [{ fp64Contents: [...v] }, v] as const),
  BYTES: fc.array(fc.uint8Array()).map((v) => [{ bytesContents: v }, encodeElements(v)] as const),
}

it.each(Object.entries(samples))("reads %s contents as the same bytes as a raw tensor", (datatype, sample) => {
  fc.assert(
    fc.property(sample, ([contents, data]) => {
      const raw = new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
      const explicit = decode({ inputs: [input({ datatype, contents })] })
      expect(explicit).toEqual(decode({ inputs: [input({ datatype })], rawInputContents: [raw] }))
    }),
  )
})

it.each<[string, ContentsInit, number, number]>([
  ["INT8", { intContents: [127, -128, 128, 300] }, 2, 128],
  ["INT8", { intContents: [-129] }, 0, -129],
  ["INT16", { intContents: [32767, -32768, -32769] }, 2, -32769],
  ["UINT8", { uintContents: [255, 0, 256] }, 2, 256],
  ["UINT8", { uintContents: [2 ** 32 - 1] }, 0, 2 ** 32 - 1],
  ["UINT16", { uintContents: [65535, 65536] }, 1, 65536],
])("refuses integers that do not fit %s: %j", (datatype, contents, index, value) => {
  const problem = `integer out of range: element ${index} is ${value}, expected ${datatype}`
  const expected = `InvalidRequest: unexpected explicit tensor data for input tensor 'X' for model 'm': ${problem}`
  expect(failure({ modelName: "m", inputs: [input({ datatype, contents })] })).toBe(expected)
  // The general codec reads inputs with parameters.
  const parameters = { p: integer(1n) }
  expect(failure({ modelName: "m", inputs: [input({ datatype, contents, parameters })] })).toBe(expected)
})

it("never throws on bytes that are not a request", () => {
  const valid = bytesOf({
    modelName: "m",
    parameters: { p: { parameterChoice: { case: "boolParam", value: true } } },
    inputs: [input({ contents: { fp32Contents: [1, 2], int64Contents: [3n] } })],
    outputs: [{ name: "Y" }],
  })
  const mutated = fc.array(fc.tuple(fc.nat(valid.length - 1), fc.nat(255)), { minLength: 1 }).map((changes) => {
    const bytes = valid.slice()
    for (const [at, value] of changes) bytes[at] = value
    return bytes
  })
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 200 }), mutated), (bytes) => {
      const decoded = ProtobufCodec.decode(bytes)
      if (Result.isFailure(decoded)) expect(["InvalidRequest", "Unsupported"]).toContain(decoded.failure._tag)
    }),
    { numRuns: 2_000 },
  )
})

it("survives groups nested without end", () => {
  expect(Result.isFailure(ProtobufCodec.decode(new Uint8Array(1_000_000).fill((15 << 3) | 3)))).toBe(true)
})

const parameter = fc.oneof(
  fc.boolean(),
  fc.string(),
  fc.double(),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
)

const response: fc.Arbitrary<WireResponse> = fc.record({
  modelName: fc.string(),
  modelVersion: fc.string(),
  id: fc.string(),
  parameters: fc.dictionary(fc.string(), parameter),
  outputs: fc.array(
    fc.record({
      name: fc.string(),
      datatype: fc.constantFrom(...all),
      shape: fc.array(fc.maxSafeNat()),
      bytes: fc.uint8Array({ maxLength: 300 }),
    }),
  ),
})

it("writes the same bytes as protobuf-es, after the requested headroom", () => {
  fc.assert(
    fc.property(response, fc.constantFrom(0, 5), (response, headroom) => {
      const message = ProtobufCodec.toMessage(response)
      const bytes = ProtobufCodec.encode(response, headroom)
      expect(bytes.length).toBe(bytes.buffer.byteLength)
      expect(bytes.subarray(headroom)).toEqual(toBinary(ModelInferResponseSchema, message))
    }),
  )
})

it("writes parameters and shapes that read as what they were", () => {
  const parameters = { flag: true, text: "t", number: 1.5, signed: -1n, unsigned: 2n ** 64n - 1n }
  const outputs = [{ name: "Y", datatype: "INT8", shape: [2], bytes: new Uint8Array([1, 2]) }]
  const bytes = ProtobufCodec.encode({ modelName: "m", modelVersion: "1", id: "", parameters, outputs })
  const message = fromBinary(ModelInferResponseSchema, bytes)
  expect(message.outputs[0]).toMatchObject({ name: "Y", datatype: "INT8", shape: [2n] })
  expect(message.rawOutputContents).toEqual([new Uint8Array([1, 2])])
  const read = Object.entries(message.parameters).map(([name, { parameterChoice }]) => [name, parameterChoice.value])
  expect(Object.fromEntries(read)).toEqual(parameters)
})
