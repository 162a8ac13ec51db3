/** Answers of scripts as Triton takes them from Python models: outputs left out, extra ones, shapes, several rows. */
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import type { GrpcCase, InferCase } from "../Case.ts"
import { encode } from "../GrpcEncoding.ts"
import { type Outcome, type Tensor, tensor } from "../InferRequest.ts"
import { on } from "./stored.ts"

const int32 = (name: string, shape: ReadonlyArray<number>, ...elements: ReadonlyArray<number>) =>
  tensor(name, "INT32", shape, elements)

const one = (name: string, value: number) => int32(name, [1, 1], value)

const answer = (
  name: string,
  model: string,
  input: Tensor,
  expected: Outcome,
  outputs: ReadonlyArray<string> = [],
): InferCase => ({
  ...on("C21"),
  name: `an answer of a script: ${name}`,
  request: { model, inputs: [input], outputs: outputs.map((name) => ({ name })) },
  expected,
})

const zeros = (...shape: ReadonlyArray<number>) =>
  int32("Y", shape, ...Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => 0))

const some = "some_outputs"

export const storedAnswers: ReadonlyArray<InferCase> = [
  answer("none of its outputs", some, one("X", 0), { outputs: [] }),
  answer("the second output alone", some, one("X", 2), { outputs: [one("Z", 2)] }),
  answer("all outputs", some, one("X", 3), { outputs: [one("Y", 3), one("Z", 3)] }),
  answer("more than the caller requested", some, one("X", 3), { outputs: [one("Z", 3)] }, ["Z"]),
  answer("without the requested output", some, one("X", 1), { outputs: [] }, ["Z"]),
  answer("both connections of an ensemble", "sum_of_outputs", one("X", 3), { outputs: [one("S", 11)] }),
  answer("without a connection of an ensemble", "sum_of_outputs", one("X", 1), { outputs: [one("S", 10)] }),
  answer("without the other connection", "sum_of_outputs", one("X", 2), { outputs: [one("S", 1)] }),
  answer("without a connection that a step requires", "sum_with_output", one("X", 2), {
    tag: "InvalidRequest",
    error: /^in ensemble 'sum_with_output', .*'A'/,
  }),
  answer("without an output of an ensemble", "outputs_of_some", one("X", 2), { outputs: [one("Q", 2)] }),
  answer("without a requested output of an ensemble", "outputs_of_some", one("X", 2), { outputs: [] }, ["P"]),
  answer("the declared rank", "shaped_freely", int32("X", [2], 2, 1), { outputs: [zeros(2, 1)] }),
  answer("a lower rank than declared", "shaped_freely", int32("X", [1], 2), { outputs: [zeros(2)] }),
  answer("a higher rank than declared", "shaped_freely", int32("X", [3], 1, 2, 1), { outputs: [zeros(1, 2, 1)] }),
  answer("the declared dim", "shaped_in_part", int32("X", [2], 2, 3), { outputs: [zeros(2, 3)] }),
  answer("another dim than declared", "shaped_in_part", int32("X", [2], 2, 2), {
    tag: "ExecutionFailed",
    error: "output 'Y' of model 'shaped_in_part': wrong dims: declared as INT32[-1,3], got INT32[2,2]",
  }),
]

const { modelStreamInfer } = GRPCInferenceService.method

const streamed = (name: string, model: string, input: Tensor, replies: ReadonlyArray<RegExp>): GrpcCase => ({
  ...on("C25"),
  name: `an answer of a script: ${name}`,
  call: { method: "ModelStreamInfer", chunks: [encode({ model, inputs: [input] }, "gRPC stream")] },
  expected: { code: 0, replies },
  output: modelStreamInfer.output,
})

const shape = (...extents: ReadonlyArray<number>) => `"shape":\\[${extents.map((extent) => `"${extent}"`).join(",")}\\]`

const first = (...extents: ReadonlyArray<number>) => new RegExp(`"first":\\{"boolParam":true\\}.*${shape(...extents)}`)

const second = (...extents: ReadonlyArray<number>) => new RegExp(`^(?!.*"first").*${shape(...extents)}`)

export const storedStreams: ReadonlyArray<GrpcCase> = [
  streamed("responses of three rows", "twice_rows", int32("X", [3, 1], 1, 2, 3), [first(3, 1), second(3, 1)]),
  streamed("responses without a row axis", "twice_without_batch", int32("X", [1], 7), [first(1), second(1)]),
  streamed("the text of an error that it throws", "twice_rows", one("X", -1), [/^\{"errorMessage":"no way down"/]),
]
