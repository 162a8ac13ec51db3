/** Against protobuf-es, on random, mutated and hand-picked messages. */
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf"
import { expect, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import {
  type ModelInferRequest,
  ModelInferRequestSchema,
  ModelInferResponseSchema,
} from "@nereid/protocol/grpc_service"
import { noParameters } from "../Inference.ts"
import * as PlainProtobuf from "./PlainProtobuf.ts"
import { fromMessage } from "./ProtobufCodec.ts"
import type { WireRequest, WireResponse } from "../WireRequest.ts"

const name = fc.string({ maxLength: 40, unit: "grapheme" })
const extent = fc.oneof(fc.nat(300), fc.nat(2 ** 31 - 1), fc.maxSafeNat())
const contents = fc.uint8Array({ maxLength: 300 })

const request = fc
  .record({
    modelName: name,
    modelVersion: name,
    id: name,
    inputs: fc.array(fc.record({ name, datatype: name, shape: fc.array(extent.map(BigInt), { maxLength: 5 }) })),
    outputs: fc.array(fc.record({ name })),
    rawInputContents: fc.array(contents),
  })
  .map((init) => create(ModelInferRequestSchema, init))

const general = (bytes: Uint8Array): WireRequest | undefined => {
  let message: ModelInferRequest
  try {
    message = fromBinary(ModelInferRequestSchema, bytes)
  } catch {
    return undefined
  }
  return Result.getOrElse(fromMessage(message), () => undefined)
}

/** What is plain is read as the general codec reads it. */
const agrees = (bytes: Uint8Array): boolean => {
  const plain = PlainProtobuf.read(bytes)
  if (plain !== undefined) expect(plain).toEqual(general(bytes))
  return plain !== undefined
}

const ascii = (text: string) => text.replaceAll(/[^\x20-\x7e]/g, "a")

it("a plain request is read, as the general codec reads it", () => {
  fc.assert(
    fc.property(request, (message) => {
      message.rawInputContents = message.inputs.map(
        (_, index) => message.rawInputContents[index] ?? new Uint8Array(index),
      )
      message.modelName = ascii(message.modelName)
      message.modelVersion = ascii(message.modelVersion)
      message.id = ascii(message.id)
      for (const named of [...message.inputs, ...message.outputs]) named.name = ascii(named.name)
      for (const input of message.inputs) {
        input.datatype = ascii(input.datatype)
        input.shape = input.shape.map((extent) => extent % 2n ** 49n)
      }
      expect(agrees(toBinary(ModelInferRequestSchema, message))).toBe(true)
    }),
  )
})

it("any request is read alike or left alone", () => {
  fc.assert(
    fc.property(
      request,
      (init) => void agrees(toBinary(ModelInferRequestSchema, create(ModelInferRequestSchema, init))),
    ),
  )
})

it("mutated bytes are read alike or left alone", () => {
  const mutation = fc.record({
    at: fc.nat(),
    cut: fc.nat(4),
    put: fc.uint8Array({ maxLength: 4 }),
  })
  fc.assert(
    fc.property(request, fc.array(mutation, { minLength: 1, maxLength: 3 }), (message, mutations) => {
      let bytes = toBinary(ModelInferRequestSchema, message)
      for (const { at, cut, put } of mutations) {
        const from = at % (bytes.length + 1)
        bytes = Uint8Array.of(...bytes.subarray(0, from), ...put, ...bytes.subarray(from + cut))
      }
      agrees(bytes)
    }),
    { numRuns: 3000 },
  )
})

it("parameters, typed contents, other wire types and unknown fields are left alone", () => {
  const one = { parameterChoice: { case: "int64Param", value: 1n } } as const
  const input = { name: "X", datatype: "FP32", shape: [1n] }
  const cases: ReadonlyArray<MessageInitShape<typeof ModelInferRequestSchema>> = [
    { parameters: { one } },
    { inputs: [{ ...input, parameters: { one } }], rawInputContents: [new Uint8Array(4)] },
    { inputs: [{ ...input, contents: { fp32Contents: [1] } }] },
    { inputs: [input] },
    { outputs: [{ name: "Y", parameters: { one } }] },
    { rawInputContents: [new Uint8Array(1)] },
    { inputs: [{ ...input, shape: [-1n] }], rawInputContents: [new Uint8Array(4)] },
    { modelName: "größer" },
  ]
  for (const init of cases) {
    const bytes = toBinary(ModelInferRequestSchema, create(ModelInferRequestSchema, init))
    expect(PlainProtobuf.read(bytes), JSON.stringify(Object.keys(init))).toBeUndefined()
  }
  for (const bytes of [
    [0x08, 0x01],
    [0x0a, 0x05, 0x41],
    [0x0a],
    [0x42, 0x00],
    [0x2a, 0x02, 0x18, 0x01],
    [0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f],
  ]) {
    expect(PlainProtobuf.read(Uint8Array.from(bytes))).toBeUndefined()
  }
})

it("a response is written as the general codec reads it, behind the caller's headroom", () => {
  const response: fc.Arbitrary<WireResponse> = fc.record({
    modelName: name,
    modelVersion: name,
    id: name,
    parameters: fc.constant(noParameters),
    outputs: fc.array(fc.record({ name, datatype: name, shape: fc.array(extent, { maxLength: 5 }), bytes: contents })),
  })
  fc.assert(
    fc.property(response, fc.nat(8), (wire, headroom) => {
      const bytes = PlainProtobuf.write(wire, headroom)
      const expected = toBinary(
        ModelInferResponseSchema,
        create(ModelInferResponseSchema, {
          modelName: wire.modelName,
          modelVersion: wire.modelVersion,
          id: wire.id,
          outputs: wire.outputs.map(({ name, datatype, shape }) => ({ name, datatype, shape: shape.map(BigInt) })),
          rawOutputContents: wire.outputs.map(({ bytes }) => bytes),
        }),
      )
      expect(bytes?.subarray(headroom)).toEqual(expected)
    }),
  )
  const output = { name: "Y", datatype: "FP32", shape: [1], bytes: new Uint8Array(4) }
  const plain = { modelName: "m", modelVersion: "1", id: "", parameters: noParameters, outputs: [output] }
  expect(PlainProtobuf.write({ ...plain, parameters: { n: 1n } }, 0)).toBeUndefined()
  expect(
    PlainProtobuf.write({ ...plain, outputs: [{ ...output, region: { name: "r", byteSize: 4, offset: 0 } }] }, 0),
  ).toBeUndefined()
})
