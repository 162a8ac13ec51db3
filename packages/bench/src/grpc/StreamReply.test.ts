import { create, toBinary } from "@bufbuild/protobuf"
import { ModelStreamInferResponseSchema } from "@nereid/protocol/grpc_service"
import * as fc from "fast-check"
import { expect, it } from "vitest"
import * as StreamReply from "./StreamReply.ts"

const parameter = fc.oneof(
  fc.boolean().map((value) => ({ parameterChoice: { case: "boolParam" as const, value } })),
  fc.string().map((value) => ({ parameterChoice: { case: "stringParam" as const, value } })),
  fc.double().map((value) => ({ parameterChoice: { case: "doubleParam" as const, value } })),
)

it("reads what a message was made of, also where only its beginning is there", () => {
  fc.assert(
    fc.property(
      fc.string(),
      fc.stringMatching(/^[ -~]*$/),
      fc.option(fc.boolean(), { nil: undefined }),
      fc.dictionary(fc.string(), parameter, { noNullPrototype: true }),
      fc.uint8Array({ maxLength: 500 }),
      (errorMessage, id, final, others, raw) => {
        const own = final === undefined ? {} : { parameterChoice: { case: "boolParam" as const, value: final } }
        const bytes = toBinary(
          ModelStreamInferResponseSchema,
          create(ModelStreamInferResponseSchema, {
            errorMessage,
            inferResponse: {
              modelName: "m",
              id,
              parameters: { ...others, ...(final === undefined ? {} : { triton_final_response: own }) },
              outputs: [{ name: "OUT", datatype: "UINT8", shape: [BigInt(raw.length)] }],
              rawOutputContents: [raw],
            },
          }),
        )
        const expected = { error: errorMessage, id, final }
        const beginning = bytes.subarray(0, bytes.length - raw.length)
        expect(StreamReply.read(Buffer.from(bytes), 0, bytes.length)).toEqual(expected)
        expect(StreamReply.read(Buffer.from(beginning), 0, beginning.length)).toEqual(expected)
        const between = Buffer.concat([bytes, bytes, bytes])
        expect(StreamReply.read(between, bytes.length, 2 * bytes.length)).toEqual(expected)
      },
    ),
  )
})

it("never throws on malformed bytes", () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      StreamReply.read(Buffer.from(bytes), 0, bytes.length)
    }),
  )
})
