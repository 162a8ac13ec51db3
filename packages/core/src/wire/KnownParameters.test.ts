/** The parameters that the protocol knows, as both codecs check them (C21). */
import { create } from "@bufbuild/protobuf"
import { expect, it } from "@effect/vitest"
import { Result } from "effect"
import { type InferParameter, InferParameterSchema, ModelInferRequestSchema } from "@nereid/protocol/grpc_service"
import { readRequest } from "../codec/json/JsonDecoder.ts"
import * as KnownParameters from "./KnownParameters.ts"
import * as ProtobufCodec from "../codec/protobuf/ProtobufCodec.ts"

const overHttp = (name: string, value: string) => {
  const document = `{"inputs":[],"parameters":{"${name}":${value}}}`
  return Result.match(readRequest(new TextEncoder().encode(document)), {
    onFailure: ({ _tag, message }) => `${_tag}: ${message}`,
    onSuccess: ({ parameters }) => parameters,
  })
}

type Choice = InferParameter["parameterChoice"]

const overGrpc = (name: string, parameterChoice: Choice) => {
  const message = create(ModelInferRequestSchema, {
    parameters: { [name]: create(InferParameterSchema, { parameterChoice }) },
  })
  return Result.match(ProtobufCodec.fromMessage(message), {
    onFailure: ({ _tag, message }) => `${_tag}: ${message}`,
    onSuccess: ({ parameters }) => parameters,
  })
}

const unparsed = (name: string, expected: string) =>
  `MalformedRequest: Unable to parse '${name}': attempt to access JSON non-${expected} as ${expected}`

it.each([
  ["sequence_id", "true", unparsed("sequence_id", "string")],
  ["sequence_id", "-1", unparsed("sequence_id", "string")],
  ["sequence_id", "1.5", unparsed("sequence_id", "string")],
  ["sequence_start", "1", unparsed("sequence_start", "boolean")],
  ["sequence_end", '"true"', unparsed("sequence_end", "boolean")],
  ["priority", "-1", unparsed("priority", "unsigned-integer")],
  ["priority", "true", unparsed("priority", "unsigned-integer")],
  ["timeout", "-1", unparsed("timeout", "unsigned-integer")],
  ["timeout", "1.0", unparsed("timeout", "unsigned-integer")],
  ["binary_data_output", "1", unparsed("binary_data_output", "boolean")],
  [
    "sequence_id",
    `"${"ä".repeat(65)}"`,
    "InvalidRequest: the string of the 'sequence_id' parameter cannot be longer than 128 bytes, got 130",
  ],
  [
    "triton_x",
    "1",
    "InvalidRequest: parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
  ],
  [
    "triton_enable_empty_final_response",
    "true",
    "InvalidRequest: parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
  ],
  [
    "headers",
    "{}",
    "InvalidRequest: parameter 'headers' has invalid type. It should be either 'int', 'bool', or 'string'.",
  ],
])("HTTP refuses '%s' with the value %s", (name, value, expected) => {
  expect(overHttp(name, value)).toBe(expected)
})

it.each<readonly [string, string, unknown]>([
  ["sequence_id", "0", 0n],
  ["sequence_id", "18446744073709551615", 2n ** 64n - 1n],
  ["sequence_id", `"${"a".repeat(128)}"`, "a".repeat(128)],
  ["sequence_start", "true", true],
  ["priority", "3", 3n],
  ["timeout", "1000", 1000n],
  ["mine", "-1", -1n],
])("HTTP takes '%s' with the value %s", (name, value, expected) => {
  expect(overHttp(name, value)).toEqual({ [name]: expected })
})

const wrong = (name: string, types: string) =>
  `InvalidRequest: invalid value type for '${name}' parameter, expected ${types}.`

const int64 = (value: bigint): Choice => ({ case: "int64Param", value })
const uint64 = (value: bigint): Choice => ({ case: "uint64Param", value })
const string = (value: string): Choice => ({ case: "stringParam", value })
const bool = (value: boolean): Choice => ({ case: "boolParam", value })

it.each<readonly [string, Choice, string]>([
  ["sequence_id", bool(true), wrong("sequence_id", "int64_param or string_param")],
  ["sequence_id", uint64(1n), wrong("sequence_id", "int64_param or string_param")],
  ["sequence_start", int64(1n), wrong("sequence_start", "bool_param")],
  ["sequence_end", string("true"), wrong("sequence_end", "bool_param")],
  ["priority", string("1"), wrong("priority", "int64_param or uint64_param")],
  ["priority", int64(-1n), "InvalidRequest: invalid value '-1' for 'priority' parameter, expected value >= 0."],
  ["timeout", uint64(1n), wrong("timeout", "int64_param")],
  ["timeout", int64(-1n), "InvalidRequest: invalid value '-1' for 'timeout' parameter, expected value >= 0."],
  ["triton_enable_empty_final_response", int64(1n), wrong("triton_enable_empty_final_response", "bool_param")],
  [
    "triton_x",
    bool(true),
    "InvalidRequest: parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys " +
      "starting with 'triton_' are allowed: triton_enable_empty_final_response",
  ],
])("gRPC refuses '%s' with the value %o", (name, choice, expected) => {
  expect(overGrpc(name, choice)).toBe(expected)
})

it.each<readonly [string, Choice]>([
  ["sequence_id", int64(-1n)],
  ["sequence_id", string("a")],
  ["priority", uint64(2n ** 64n - 1n)],
  ["priority", int64(0n)],
  ["timeout", int64(0n)],
  ["triton_enable_empty_final_response", bool(true)],
  ["mine", { case: "doubleParam", value: -0.5 }],
])("gRPC takes '%s' with the value %o", (name, choice) => {
  expect(overGrpc(name, choice)).toEqual({ [name]: choice.value })
})

it("transport parameters do not reach a model", () => {
  const parameters = { triton_enable_empty_final_response: true, mine: 1n }
  expect(KnownParameters.forModel(parameters)).toEqual({ mine: 1n })
})
