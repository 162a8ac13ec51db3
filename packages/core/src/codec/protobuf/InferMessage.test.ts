/**
 * The client's messages, compared with protobuf-es: requests byte for byte, and responses decoded from arbitrary bytes.
 */
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf"
import { expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import {
  ModelInferRequestSchema,
  ModelInferResponseSchema,
  ModelStreamInferResponseSchema,
} from "@nereid/protocol/grpc_service"
import { noParameters, type Parameters } from "../../request/Request.ts"
import * as InferMessage from "./InferMessage.ts"
import * as PlainResponse from "./PlainResponse.ts"
import { mutated } from "./ProtobufMutation.fixture.ts"
import { toMessage } from "./ProtobufCodec.ts"
import type { WireRequest } from "../../wire/WireRequest.ts"

const name = fc.string({ maxLength: 150, unit: "grapheme" })
const extent = fc.oneof(fc.nat(300), fc.nat(2 ** 31 - 1), fc.maxSafeNat(), fc.maxSafeInteger())

const parameters: fc.Arbitrary<Parameters> = fc.oneof(
  fc.constant(noParameters),
  fc.dictionary(name, fc.oneof(fc.boolean(), name, fc.double(), fc.bigInt(-(2n ** 63n), 2n ** 64n - 1n)), {
    maxKeys: 4,
  }),
)

const request: fc.Arbitrary<WireRequest> = fc.record({
  modelName: name,
  modelVersion: name,
  id: name,
  parameters,
  inputs: fc.array(
    fc.record({
      name,
      datatype: name,
      shape: fc.array(extent, { maxLength: 5 }),
      bytes: fc.uint8Array({ maxLength: 300 }),
    }),
    { maxLength: 4 },
  ),
  outputs: fc.array(fc.record({ name, binary: fc.constant(undefined) }), { maxLength: 3 }),
})

/** The fields of a message, as the general codec takes them. */
const fieldsOf = (parameters: Parameters) =>
  toMessage({ modelName: "", modelVersion: "", id: "", parameters, outputs: [] }).parameters

it.each([2n ** 63n, 2n ** 64n - 1n])("the sequence id %o is written as its signed counterpart", (id) => {
  const wire = { modelName: "m", modelVersion: "", id: "", inputs: [], outputs: [] }
  const written = InferMessage.encode({ ...wire, parameters: { sequence_id: id, other: id } }, 0)
  const { parameters } = fromBinary(ModelInferRequestSchema, written)
  expect(parameters["sequence_id"]?.parameterChoice).toEqual({ case: "int64Param", value: id - 2n ** 64n })
  expect(parameters["other"]?.parameterChoice).toEqual({ case: "uint64Param", value: id })
})

it("a request is written as the general codec writes it, behind what is left for its caller", () => {
  fc.assert(
    fc.property(request, fc.nat(8), (wire, headroom) => {
      const { modelName, modelVersion, id, inputs, outputs } = wire
      const written = InferMessage.encode(wire, headroom, (length) => new Uint8Array(length).fill(0xa5))
      const expected = toBinary(
        ModelInferRequestSchema,
        create(ModelInferRequestSchema, {
          modelName,
          modelVersion,
          id,
          parameters: fieldsOf(wire.parameters),
          inputs: inputs.map(({ name, datatype, shape }) => ({ name, datatype, shape: shape.map(BigInt) })),
          outputs: outputs.map(({ name }) => ({ name })),
          rawInputContents: inputs.map(({ bytes }) => bytes),
        }),
      )
      expect(written.subarray(headroom)).toEqual(expected)
      expect(written.subarray(0, headroom).every((byte) => byte === 0xa5)).toBe(true)
    }),
  )
})

type Init = MessageInitShape<typeof ModelInferResponseSchema>

const long = fc.oneof({ weight: 9, arbitrary: fc.bigInt(0n, 300n) }, fc.bigInt(-1n, 2n ** 50n))

const response: fc.Arbitrary<Init> = fc
  .record({
    modelName: name,
    modelVersion: name,
    id: name,
    parameters: parameters.map(fieldsOf),
    outputs: fc.array(fc.record({ name, datatype: name, shape: fc.array(long, { maxLength: 4 }) }), { maxLength: 4 }),
    tensors: fc.array(fc.uint8Array({ maxLength: 100 }), { minLength: 4, maxLength: 4 }),
    isRaw: fc.boolean(),
  })
  .map(({ tensors, isRaw, ...init }) => ({
    ...init,
    rawOutputContents: isRaw ? tensors.slice(0, init.outputs.length) : [],
  }))

const encode = (init: Init) => toBinary(ModelInferResponseSchema, create(ModelInferResponseSchema, init))

/** The decoded response, or "no response" if decoding throws. */
const readBy = (decode: typeof InferMessage.decode, bytes: Uint8Array) => {
  try {
    return decode(bytes)
  } catch {
    return "no response"
  }
}

const isPlain = (bytes: Uint8Array) => PlainResponse.read(bytes, 0, bytes.length) !== undefined

it.each([
  ["a response", response.map(encode)],
  ["bytes that are nearly one", mutated(response.map(encode))],
] as const)("%s: read as the general codec reads it", (_, messages) => {
  let plain = 0
  fc.assert(
    fc.property(messages, (bytes) => {
      plain += Number(isPlain(bytes))
      expect(readBy(InferMessage.decode, bytes)).toEqual(readBy(InferMessage.decodeAny, bytes))
    }),
    { numRuns: 3000 },
  )
  // Neither all nor none, or it would prove little.
  expect(plain).toBeGreaterThan(100)
  expect(plain).toBeLessThan(2900)
})

it("tensors that come as typed contents are read by the general codec", () => {
  const bytes = encode({
    modelName: "m",
    outputs: [{ name: "Y", datatype: "INT32", shape: [2n], contents: { intContents: [1, -2] } }],
  })
  expect(isPlain(bytes)).toBe(false)
  const [output] = InferMessage.decode(bytes).outputs
  expect(output?.bytes).toEqual(new Uint8Array(Int32Array.of(1, -2).buffer))
})

it.each([
  ["INT8", { intContents: [1, 128] }, 128],
  ["UINT16", { uintContents: [1, 65536] }, 65536],
])("typed contents that do not fit %s are refused", (datatype, contents, value) => {
  const bytes = encode({ outputs: [{ name: "Y", datatype, shape: [2n], contents }] })
  const problem = `output 'Y': integer out of range: element 1 is ${value}, expected ${datatype}`
  expect(() => InferMessage.decode(bytes)).toThrow(problem)
})

it("fields of wrong wire types are ignored, and invalid responses refused", () => {
  const bytes = encode({ modelName: "m", id: "1", outputs: [{ name: "Y" }], rawOutputContents: [new Uint8Array(1)] })
  const expected = InferMessage.decode(bytes)
  const streamed = (response: Uint8Array) => Uint8Array.of(0x12, response.length, ...response)
  for (const field of [
    [0x18, 5],
    [0x2d, 1, 2, 3, 4],
    [0x30, 1],
  ]) {
    const response = Uint8Array.of(...bytes, ...field)
    expect(InferMessage.decode(response)).toEqual(expected)
    expect(InferMessage.decodeStreamed(streamed(response)).response).toEqual(expected)
  }
  expect(() => InferMessage.decode(Uint8Array.of(...bytes, 0x1a, 1, 0xff))).toThrow()
  expect(() => InferMessage.decode(Uint8Array.of(...bytes, 0x1e, 1))).toThrow("wire type 6 of field 3")
})

const encodeStreamed = (init: MessageInitShape<typeof ModelStreamInferResponseSchema>) =>
  toBinary(ModelStreamInferResponseSchema, create(ModelStreamInferResponseSchema, init))

const streamed = fc
  .record({
    errorMessage: fc.oneof({ weight: 9, arbitrary: fc.constant("") }, name),
    inferResponse: fc.option(response, { nil: undefined, freq: 9 }),
  })
  .map(({ errorMessage, inferResponse }) =>
    encodeStreamed(inferResponse === undefined ? { errorMessage } : { errorMessage, inferResponse }),
  )

it.each([
  ["a response of a stream", streamed],
  ["bytes that are nearly one", mutated(streamed)],
] as const)("%s: read as the general codec reads it", (_, messages) => {
  const readBy = (decode: typeof InferMessage.decodeStreamed, bytes: Uint8Array) => {
    try {
      return decode(bytes)
    } catch {
      return "no response"
    }
  }
  let plain = 0
  fc.assert(
    fc.property(messages, (bytes) => {
      plain += Number(PlainResponse.readStreamed(bytes) !== undefined)
      expect(readBy(InferMessage.decodeStreamed, bytes)).toEqual(readBy(InferMessage.decodeStreamedAny, bytes))
    }),
    { numRuns: 3000 },
  )
  expect(plain).toBeGreaterThan(20)
  expect(plain).toBeLessThan(2950)
})
