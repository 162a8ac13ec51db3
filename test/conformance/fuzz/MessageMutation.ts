/** One change to a ModelInferRequest, of a kind that only gRPC has words for. */
import { create } from "@bufbuild/protobuf"
import { InferParameterSchema, InferTensorContentsSchema, type ModelInferRequest } from "@nereid/protocol/grpc_service"
import type { Random } from "./Random.ts"

/** Changes the message in place, and says what it did. */
export const mutateMessage = (random: Random, message: ModelInferRequest): string => {
  const { inputs, rawInputContents } = message
  const input = inputs[random.below(inputs.length)]
  const raw = random.below(rawInputContents.length)
  switch (random.below(9)) {
    case 0:
      rawInputContents.splice(raw, 1)
      return "a raw content less"
    case 1:
      rawInputContents.splice(raw, 0, random.bytes(random.below(16)))
      return "a raw content more"
    case 2:
      rawInputContents.reverse()
      return "raw contents turned round"
    case 3:
      if (input !== undefined) delete input.contents
      return "no contents"
    case 4:
      if (input !== undefined) input.contents = contents(random)
      return "other contents"
    case 5:
      if (input !== undefined) input.shape = input.shape.map((extent) => (random.chance(0.5) ? extent : -extent))
      return "negative extents"
    case 6:
      message.parameters[random.pick(names)] = parameter(random)
      return "a parameter"
    case 7:
      for (const output of message.outputs) output.parameters[random.pick(names)] = parameter(random)
      return "parameters of outputs"
    default:
      if (input !== undefined) input.parameters[random.pick(names)] = parameter(random)
      return "a parameter of an input"
  }
}

const names = [
  "a",
  "classification",
  "priority",
  "timeout",
  "sequence_id",
  "sequence_start",
  "triton_enable_empty_final_response",
  "triton_x",
  "__proto__",
]

const contents = (random: Random) =>
  create(
    InferTensorContentsSchema,
    random.pick([
      {},
      { intContents: [1, -1] },
      { uintContents: [1, 70_000] },
      { fp32Contents: [Number.NaN] },
      { fp64Contents: [0.1, 2] },
      { boolContents: [true] },
      { bytesContents: [random.bytes(3)] },
      { int64Contents: [-1n], uint64Contents: [1n] },
    ]),
  )

const parameter = (random: Random) =>
  create(
    InferParameterSchema,
    random.pick([
      {},
      { parameterChoice: { case: "boolParam" as const, value: true } },
      { parameterChoice: { case: "int64Param" as const, value: BigInt(random.below(5)) - 2n } },
      { parameterChoice: { case: "uint64Param" as const, value: 2n ** 64n - 1n } },
      { parameterChoice: { case: "doubleParam" as const, value: Number.NaN } },
      { parameterChoice: { case: "stringParam" as const, value: "x".repeat(random.below(200)) } },
    ]),
  )
