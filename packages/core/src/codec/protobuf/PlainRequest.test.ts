/** Against protobuf-es, on random, mutated and hand-picked messages: the same value, or left alone. */
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf"
import { expect, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import { type ModelInferRequest, ModelInferRequestSchema } from "@nereid/protocol/grpc_service"
import * as GeneralMessage from "./GeneralMessage.ts"
import * as PlainRequest from "./PlainRequest.ts"
import { mutated } from "./ProtobufMutation.fixture.ts"
import { fromMessage } from "./ProtobufCodec.ts"
import type { WireRequest } from "../../wire/WireRequest.ts"

type Init = MessageInitShape<typeof ModelInferRequestSchema>

const name = fc.string({ maxLength: 70, unit: "grapheme" })
const extent = fc.oneof(fc.nat(300), fc.nat(2 ** 31 - 1), fc.nat(2 ** 48))
const int64 = fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n)
const uint64 = fc.bigInt(0n, 2n ** 64n - 1n)

const choice = fc.oneof(
  fc.record({ case: fc.constant("boolParam" as const), value: fc.boolean() }),
  fc.record({ case: fc.constant("int64Param" as const), value: fc.oneof(int64, fc.bigInt(-3n, 300n)) }),
  fc.record({ case: fc.constant("uint64Param" as const), value: uint64 }),
  fc.record({ case: fc.constant("doubleParam" as const), value: fc.double() }),
  fc.record({ case: fc.constant("stringParam" as const), value: name }),
)

const parameters = fc.dictionary(
  fc.oneof(name, fc.constantFrom("sequence_id", "sequence_start", "priority", "timeout", "triton_x")),
  choice.map((parameterChoice) => ({ parameterChoice })),
  { maxKeys: 3 },
)

/** A datatype, and contents in the field that it has. */
const typed = fc.oneof(
  fc.record({ datatype: fc.constant("BOOL"), contents: fc.record({ boolContents: fc.array(fc.boolean()) }) }),
  fc.record({
    datatype: fc.constantFrom("INT8", "INT16", "INT32"),
    contents: fc.record({ intContents: fc.array(fc.integer({ min: -128, max: 127 })) }),
  }),
  fc.record({ datatype: fc.constant("INT32"), contents: fc.record({ intContents: fc.array(fc.integer()) }) }),
  fc.record({ datatype: fc.constant("INT64"), contents: fc.record({ int64Contents: fc.array(int64) }) }),
  fc.record({
    datatype: fc.constantFrom("UINT8", "UINT16", "UINT32"),
    contents: fc.record({ uintContents: fc.array(fc.nat(255)) }),
  }),
  fc.record({ datatype: fc.constant("UINT32"), contents: fc.record({ uintContents: fc.array(fc.nat(2 ** 32 - 1)) }) }),
  fc.record({ datatype: fc.constant("UINT64"), contents: fc.record({ uint64Contents: fc.array(uint64) }) }),
  fc.record({
    datatype: fc.constant("FP32"),
    contents: fc.record({ fp32Contents: fc.array(fc.float({ noNaN: true })) }),
  }),
  fc.record({
    datatype: fc.constant("FP64"),
    contents: fc.record({ fp64Contents: fc.array(fc.double({ noNaN: true })) }),
  }),
  fc.record({
    datatype: fc.constant("BYTES"),
    contents: fc.record({ bytesContents: fc.array(fc.uint8Array({ maxLength: 20 })) }),
  }),
)

const shaped = { name, shape: fc.array(extent.map(BigInt), { maxLength: 5 }) }
const common = {
  modelName: name,
  modelVersion: name,
  id: name,
  outputs: fc.array(fc.record({ name }), { maxLength: 3 }),
}

const raw: fc.Arbitrary<Init> = fc
  .record({
    ...common,
    tensors: fc.array(fc.tuple(fc.record({ ...shaped, datatype: name }), fc.uint8Array({ maxLength: 300 })), {
      maxLength: 4,
    }),
  })
  .map(({ tensors, ...rest }) => ({
    ...rest,
    inputs: tensors.map(([input]) => input),
    rawInputContents: tensors.map(([, bytes]) => bytes),
  }))

const explicit: fc.Arbitrary<Init> = fc
  .record({ ...common, tensors: fc.array(fc.tuple(fc.record(shaped), typed), { maxLength: 3 }) })
  .map(({ tensors, ...rest }) => ({ ...rest, inputs: tensors.map(([input, contents]) => ({ ...input, ...contents })) }))

const encode = (init: Init) => toBinary(ModelInferRequestSchema, create(ModelInferRequestSchema, init))

const general = (bytes: Uint8Array): WireRequest | undefined => {
  let message: ModelInferRequest
  try {
    message = GeneralMessage.read(ModelInferRequestSchema, bytes)
  } catch {
    return undefined
  }
  return Result.getOrElse(fromMessage(message), () => undefined)
}

/** NaN has many bit patterns, and JavaScript numbers do not preserve all of them. */
const withOneNaN = (request: WireRequest | undefined) =>
  request && {
    ...request,
    inputs: request.inputs.map((input) =>
      input.datatype === "FP32" && input.bytes.length % 4 === 0
        ? { ...input, bytes: new Float32Array(new Uint8Array(input.bytes).buffer).map((value) => value) }
        : input,
    ),
  }

const read = (bytes: Uint8Array) => PlainRequest.read(bytes, 0, bytes.length)

/** Whether it was plain; then it must be what the general codec has read. */
const agrees = (bytes: Uint8Array): boolean => {
  const plain = read(bytes)
  if (plain !== undefined) expect(withOneNaN(plain)).toEqual(withOneNaN(general(bytes)))
  return plain !== undefined
}

it.each([
  ["raw tensors", raw],
  ["typed contents", explicit],
] as const)("a request with %s is read as the general codec reads it", (_, requests) => {
  fc.assert(fc.property(requests, (init) => agrees(encode(init))))
})

/** Fields of a message stand in any order, and that is all that makes it one. */
const withParameters = fc
  .tuple(raw, parameters)
  .map(([init, parameters]) => Uint8Array.of(...encode({ parameters }), ...encode(init)))

it("parameters are read as the general codec reads them, those that may not be are left alone", () => {
  let plain = 0
  fc.assert(fc.property(withParameters, (bytes) => void (plain += Number(agrees(bytes)))))
  expect(plain).toBeGreaterThan(20)
})

it("mutated messages are read alike or left alone", () => {
  let plain = 0
  const messages = fc.oneof(raw.map(encode), explicit.map(encode), withParameters)
  fc.assert(
    fc.property(mutated(messages), (bytes) => void (plain += Number(agrees(bytes)))),
    { numRuns: 5000 },
  )
  // Neither all nor none, or it would prove little.
  expect(plain).toBeGreaterThan(300)
  expect(plain).toBeLessThan(4000)
})

it("a message is read where it stands among others", () => {
  const message = encode({
    modelName: "m",
    inputs: [{ name: "X", datatype: "FP32" }],
    rawInputContents: [Uint8Array.of(1)],
  })
  const bytes = Uint8Array.of(0x0a, 0x7f, ...message, 0x0a, 0x01, 0x41)
  expect(PlainRequest.read(bytes, 2, 2 + message.length)).toEqual(read(message))
  for (let end = 2; end < 2 + message.length; end++) {
    const part = message.slice(0, end - 2)
    expect(PlainRequest.read(bytes, 2, end)).toEqual(read(part))
  }
})

it("leaves other messages to the general codec", () => {
  const one = { parameterChoice: { case: "int64Param", value: 1n } } as const
  const input = { name: "X", datatype: "FP32", shape: [1n] }
  const cases: ReadonlyArray<Init> = [
    { inputs: [{ ...input, parameters: { one } }], rawInputContents: [new Uint8Array(4)] },
    { inputs: [{ ...input, contents: { intContents: [1] } }] },
    { inputs: [{ ...input, datatype: "FP16", contents: { fp32Contents: [1] } }] },
    { inputs: [{ ...input, datatype: "INT8", contents: { intContents: [128] } }] },
    { inputs: [{ ...input, datatype: "UINT16", contents: { uintContents: [2 ** 32 - 1] } }] },
    { inputs: [{ ...input, contents: { fp32Contents: [1] } }, input], rawInputContents: [new Uint8Array(4)] },
    { inputs: [input] },
    { outputs: [{ name: "Y", parameters: { one } }] },
    { rawInputContents: [new Uint8Array(1)] },
    { inputs: [{ ...input, shape: [-1n] }], rawInputContents: [new Uint8Array(4)] },
    { parameters: { triton_other: one } },
    { parameters: { none: {} } },
    { parameters: { ["__proto__"]: one } },
  ]
  for (const init of cases) expect(read(encode(init)), JSON.stringify(Object.keys(init))).toBeUndefined()
  for (const bytes of [
    [0x08, 0x01],
    [0x0a, 0x05, 0x41],
    [0x0a],
    [0x42, 0x00],
    [0x2a, 0x02, 0x18, 0x01],
    [0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f],
    // No UTF-8.
    [0x0a, 0x01, 0xff],
    // A packed shape and packed floats that go on behind their field.
    [0x2a, 0x03, 0x1a, 0x01, 0x80, 0x01],
    [0x2a, 0x0a, 0x12, 0x04, 0x46, 0x50, 0x33, 0x32, 0x2a, 0x03, 0x32, 0x04],
  ]) {
    expect(read(Uint8Array.from(bytes))).toBeUndefined()
  }
})
