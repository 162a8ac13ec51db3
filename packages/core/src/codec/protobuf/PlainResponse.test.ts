/** Plain responses equal those of protobuf-es byte for byte, and contain none of the bytes previously in the buffer. */
import { toBinary } from "@bufbuild/protobuf"
import { expect, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import { ModelInferResponseSchema, ModelStreamInferResponseSchema } from "@nereid/protocol/grpc_service"
import { ExecutionFailed } from "../../error/InferenceError.ts"
import { noParameters, type Parameters } from "../../request/Request.ts"
import * as PlainResponse from "./PlainResponse.ts"
import { streamResponse, toMessage, toStreamMessage } from "./ProtobufCodec.ts"
import type { WireResponse, WireTensor } from "../../wire/WireRequest.ts"

const name = fc.string({ maxLength: 150, unit: "grapheme" })
const extent = fc.oneof(fc.nat(300), fc.nat(2 ** 31 - 1), fc.maxSafeNat())

const parameters: fc.Arbitrary<Parameters> = fc.oneof(
  fc.constant(noParameters),
  fc.dictionary(
    name,
    fc.oneof(fc.boolean(), name, fc.double(), fc.bigInt(-(2n ** 63n), 2n ** 64n - 1n), fc.bigInt(-200n, 200n)),
    { maxKeys: 4 },
  ),
)

const output: fc.Arbitrary<WireTensor> = fc.record(
  {
    name,
    datatype: name,
    shape: fc.array(extent, { maxLength: 5 }),
    bytes: fc.uint8Array({ maxLength: 300 }),
    region: fc.record({ name, byteSize: fc.maxSafeNat(), offset: fc.nat() }),
  },
  { requiredKeys: ["name", "datatype", "shape", "bytes"] },
)

const response: fc.Arbitrary<WireResponse> = fc.record({
  modelName: name,
  modelVersion: name,
  id: name,
  parameters,
  outputs: fc.array(output, { maxLength: 4 }),
})

/** The written bytes. The buffer is filled with 0xa5 before, which bytes outside the message must keep. */
const written = (length: number, headroom: number, write: (bytes: Uint8Array, position: number) => number) => {
  const bytes = new Uint8Array(headroom + length + 3).fill(0xa5)
  expect(write(bytes, headroom)).toBe(headroom + length)
  expect([...bytes.subarray(0, headroom), ...bytes.subarray(headroom + length)].every((byte) => byte === 0xa5)).toBe(
    true,
  )
  return bytes.subarray(headroom, headroom + length)
}

it("a response is written as the general codec writes it", () => {
  fc.assert(
    fc.property(response, fc.nat(8), (wire, headroom) => {
      const bytes = written(PlainResponse.length(wire), headroom, (bytes, position) =>
        PlainResponse.write(wire, bytes, position),
      )
      expect(bytes).toEqual(toBinary(ModelInferResponseSchema, toMessage(wire)))
    }),
  )
})

it("so is one of a stream, or what has gone wrong in its place", () => {
  const outcome = fc.oneof(
    response.map(Result.succeed),
    name.map((message) => Result.fail(new ExecutionFailed({ message }))),
  )
  fc.assert(
    fc.property(name, outcome, fc.boolean(), fc.nat(8), (id, outcome, isFinal, headroom) => {
      const message = streamResponse(id, outcome, isFinal)
      const bytes = written(PlainResponse.streamLength(message), headroom, (bytes, position) =>
        PlainResponse.writeStream(message, bytes, position),
      )
      expect(bytes).toEqual(toBinary(ModelStreamInferResponseSchema, toStreamMessage(message)))
    }),
  )
})
