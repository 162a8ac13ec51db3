/**
 * Features that only gRPC has: RPCs other than inference, and fields of a ModelInferRequest that HTTP cannot express.
 */
import type { MessageInitShape } from "@bufbuild/protobuf"
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import {
  GRPCInferenceService,
  type InferParameterSchema,
  type InferTensorContentsSchema,
  type ModelInferRequestSchema,
} from "@nereid/protocol/grpc_service"
import { Health } from "@nereid/protocol/health"
import { type GrpcCase, type GrpcExpected, rpc } from "../Case.ts"

const { method } = GRPCInferenceService

const unknownModel: GrpcExpected = {
  code: GrpcCode.NOT_FOUND,
  message: "Request for unknown model: 'no' is not found",
  tag: "ModelNotFound",
}

const unknownVersion: GrpcExpected = {
  code: GrpcCode.NOT_FOUND,
  message: "Request for unknown model: 'simple' version 9 is not found",
  tag: "ModelNotFound",
}

const wrongVersion: GrpcExpected = {
  code: GrpcCode.INVALID_ARGUMENT,
  message:
    "failed to get model version from specified version string '1x' (details: stol), version should be an integral value > 0",
  tag: "InvalidRequest",
}

const ok = (...replies: ReadonlyArray<string | RegExp>): GrpcExpected => ({ code: 0, replies })

const proves = { proves: ["C22"] } as const

const tensors = (name: string) =>
  [0, 1].map((index) => `{"name":"${name}${index}","datatype":"INT32","shape":["-1","16"]}`).join()

const services: ReadonlyArray<GrpcCase> = [
  rpc("live", method.serverLive, {}, ok('{"live":true}'), { proves: ["C22", "C1"] }),
  rpc("ready", method.serverReady, {}, ok('{"ready":true}'), { proves: ["C22", "C1"] }),
  rpc("not ready", method.serverReady, {}, ok("{}"), { proves: ["C22", "C1"], server: "small" }),
  rpc("of the server", Health.method.check, {}, ok('{"status":"SERVING"}'), proves),
  rpc(
    "of the service",
    Health.method.check,
    { service: "inference.GRPCInferenceService" },
    ok('{"status":"SERVING"}'),
    proves,
  ),
  rpc("of a server that is not ready", Health.method.check, {}, ok('{"status":"NOT_SERVING"}'), {
    ...proves,
    server: "small",
  }),
  rpc(
    "of a service that is not there",
    Health.method.check,
    { service: "x" },
    { code: GrpcCode.NOT_FOUND, message: /x/ },
    proves,
  ),
  rpc("a model", method.modelReady, { name: "simple" }, ok('{"ready":true}'), proves),
  rpc("a version", method.modelReady, { name: "versions", version: "3" }, ok('{"ready":true}'), proves),
  rpc("a model that is not", method.modelReady, { name: "stopped" }, ok("{}"), { ...proves, server: "small" }),
  rpc("no model", method.modelReady, { name: "no" }, ok("{}"), proves),
  rpc("no version", method.modelReady, { name: "simple", version: "9" }, ok("{}"), proves),
  rpc("no version of no model", method.modelReady, { name: "no", version: "1" }, ok("{}"), proves),
  rpc("no name", method.modelReady, {}, ok("{}"), proves),
  rpc("no number", method.modelReady, { name: "simple", version: "1x" }, wrongVersion, proves),
  rpc(
    "name, version, extensions",
    method.serverMetadata,
    {},
    ok(/^\{"name":"nereid","version":"[^"]+","extensions":\["classification",/),
    { proves: ["C22", "C2"] },
  ),
  rpc(
    "a model",
    method.modelMetadata,
    { name: "simple" },
    ok(
      `{"name":"simple","versions":["1"],"platform":"nereid","inputs":[${tensors("INPUT")}],"outputs":[${tensors("OUTPUT")}]}`,
    ),
    {
      proves: ["C22", "C3"],
    },
  ),
  rpc("all versions", method.modelMetadata, { name: "versions" }, ok(/"versions":\["1","3"\]/), {
    proves: ["C22", "C3"],
  }),
  rpc("strings are BYTES", method.modelMetadata, { name: "pair" }, ok(/"datatype":"BYTES","shape":\["2"\]/), {
    proves: ["C3"],
  }),
  rpc(
    "the declared contract",
    method.modelMetadata,
    { name: "scores" },
    ok(/"contractJson":"\{.*\{\\"name\\":\\"CLASS\\",\\"labels\\":\[\\"cat\\",\\"dog\\"\]\}/),
    { proves: ["C3"] },
  ),
  rpc("no model", method.modelMetadata, { name: "no" }, unknownModel, proves),
  rpc("no version", method.modelMetadata, { name: "simple", version: "9" }, unknownVersion, proves),
  rpc("a model", method.modelConfig, { name: "simple" }, ok(/"maxBatchSize":8.*"dataType":"TYPE_INT32"/), {
    proves: ["C22", "C4"],
  }),
  rpc("no model", method.modelConfig, { name: "no" }, unknownModel, proves),
  rpc("no number", method.modelConfig, { name: "simple", version: "1x" }, wrongVersion, proves),
  rpc("a model", method.modelStatistics, { name: "simple" }, ok(/^\{"modelStats":\[\{"name":"simple","version":"1",/), {
    proves: ["C22", "C38"],
  }),
  rpc("all models", method.modelStatistics, {}, ok(/"name":"simple".*"name":"onnx_simple"/), {
    proves: ["C22", "C38"],
  }),
  rpc(
    "no model",
    method.modelStatistics,
    { name: "no" },
    { code: GrpcCode.INVALID_ARGUMENT, message: "requested model 'no' is not available", tag: "InvalidRequest" },
    { proves: ["C38"] },
  ),
]

type Infer = MessageInitShape<typeof ModelInferRequestSchema>

const floats = (...values: ReadonlyArray<number>) => new Uint8Array(Float32Array.from(values).buffer)

const x = { name: "X", datatype: "FP32", shape: [2n] }

const infer = (name: string, request: Infer, expected: GrpcExpected): GrpcCase =>
  rpc(name, method.modelInfer, { modelName: "single_fp32", ...request }, expected, { proves: ["C23"] })

const invalid = (message: string | RegExp): GrpcExpected => ({
  code: GrpcCode.INVALID_ARGUMENT,
  message,
  tag: "InvalidRequest",
})

const reply = ok(/"rawOutputContents":\["AACAPwAAAEA="\]/)

const wrongContents: ReadonlyArray<readonly [string, MessageInitShape<typeof InferTensorContentsSchema>]> = [
  ["BOOL", { boolContents: [true, false] }],
  ["INT32", { intContents: [1, 2] }],
  ["INT64", { int64Contents: [1n, 2n] }],
  ["UINT32", { uintContents: [1, 2] }],
  ["UINT64", { uint64Contents: [1n, 2n] }],
  ["FP64", { fp64Contents: [1, 2] }],
  ["BYTES", { bytesContents: [new Uint8Array(1)] }],
]

const contents: ReadonlyArray<GrpcCase> = [
  infer("raw contents", { inputs: [x], rawInputContents: [floats(1, 2)] }, reply),
  infer("typed contents", { inputs: [{ ...x, contents: { fp32Contents: [1, 2] } }] }, reply),
  infer(
    "typed contents and raw contents",
    { inputs: [{ ...x, contents: { fp32Contents: [1, 2] } }], rawInputContents: [floats(1, 2)] },
    invalid("contents field must not be specified when using raw_input_contents for 'X' for model 'single_fp32'"),
  ),
  infer(
    "empty typed contents and raw contents",
    { inputs: [{ ...x, contents: {} }], rawInputContents: [floats(1, 2)] },
    invalid("contents field must not be specified when using raw_input_contents for 'X' for model 'single_fp32'"),
  ),
  infer(
    "no contents",
    { inputs: [x] },
    invalid("unable to find data for input tensor 'X' for model 'single_fp32' in request."),
  ),
  infer(
    "empty typed contents for two elements",
    { inputs: [{ ...x, contents: {} }] },
    invalid(
      "[request id: <id_unknown>] input byte size mismatch for input 'X' for model 'single_fp32'. Expected 8, got 0",
    ),
  ),
  infer(
    "empty typed contents for no elements",
    { inputs: [{ ...x, shape: [0n], contents: {} }] },
    ok(/"shape":\["0"\]/),
  ),
  infer(
    "one raw content too many",
    { inputs: [x], rawInputContents: [floats(1, 2), floats(3)] },
    invalid(/raw_input_contents/),
  ),
  infer(
    "one raw content too few",
    { inputs: [x, { ...x, name: "Y" }], rawInputContents: [floats(1, 2)] },
    invalid("unable to find data for input tensor 'Y' for model 'single_fp32' in request."),
  ),
  infer("raw contents without inputs", { rawInputContents: [floats(1)] }, invalid(/raw_input_contents/)),
  ...wrongContents.map(([type, typed]) =>
    infer(
      `typed contents of ${type} for FP32`,
      { inputs: [{ ...x, contents: typed }] },
      invalid(
        `unexpected explicit tensor data for input tensor 'X' for model 'single_fp32' of type '${type}', expected datatype 'FP32'`,
      ),
    ),
  ),
  infer(
    "typed contents of two kinds",
    { inputs: [{ ...x, contents: { fp32Contents: [1, 2], intContents: [1] } }] },
    invalid(/^unexpected explicit tensor data/),
  ),
  infer(
    "typed contents for FP16",
    { modelName: "single_fp16", inputs: [{ ...x, datatype: "FP16", contents: { fp32Contents: [1, 2] } }] },
    invalid(/^unexpected explicit tensor data .* of type 'FP32', expected datatype 'FP16'$/),
  ),
  infer(
    "the ends of 8-bit integers",
    {
      modelName: "single_int8",
      inputs: [{ name: "X", datatype: "INT8", shape: [2n], contents: { intContents: [127, -128] } }],
    },
    ok(/"rawOutputContents":\["f4A="\]/),
  ),
  infer(
    "8-bit integers out of range",
    {
      modelName: "single_int8",
      inputs: [{ name: "X", datatype: "INT8", shape: [2n], contents: { intContents: [1, -129] } }],
    },
    invalid(/^unexpected explicit tensor data .*: integer out of range: element 1 is -129, expected INT8$/),
  ),
  infer(
    "16-bit unsigned integers out of range",
    {
      modelName: "single_uint16",
      inputs: [{ name: "X", datatype: "UINT16", shape: [1n], contents: { uintContents: [65537] } }],
    },
    invalid(/^unexpected explicit tensor data .*: integer out of range: element 0 is 65537, expected UINT16$/),
  ),
  infer(
    "an extent beyond 2^53",
    { inputs: [{ ...x, shape: [2n ** 62n] }], rawInputContents: [floats(1)] },
    invalid(/4611686018427387904/),
  ),
  infer(
    "no model name",
    { modelName: "", inputs: [x], rawInputContents: [floats(1, 2)] },
    { code: GrpcCode.NOT_FOUND, message: "Request for unknown model: '' is not found", tag: "ModelNotFound" },
  ),
]

const plain = { inputs: [x], rawInputContents: [floats(1, 2)] }

type Choice = NonNullable<MessageInitShape<typeof InferParameterSchema>["parameterChoice"]>

const withParameter = (name: string, choice: Choice | undefined, expected: GrpcExpected): GrpcCase =>
  infer(name, { ...plain, parameters: { p: choice === undefined ? {} : { parameterChoice: choice } } }, expected)

const asClasses = (name: string, parameterChoice: Choice): GrpcCase =>
  infer(
    name,
    { ...plain, outputs: [{ name: "X", parameters: { classification: { parameterChoice } } }] },
    invalid("invalid value type for 'classification' parameter, expected int64_param"),
  )

const parameters: ReadonlyArray<GrpcCase> = [
  withParameter("a parameter of 64 bits without a sign", { case: "uint64Param", value: 2n ** 64n - 1n }, reply),
  withParameter("a parameter that is nothing", undefined, invalid(/'p'/)),
  infer(
    "a priority without a sign",
    { ...plain, parameters: { priority: { parameterChoice: { case: "uint64Param", value: 1n } } } },
    reply,
  ),
  asClasses("a number of classes as text", { case: "stringParam", value: "1" }),
  asClasses("a number of classes that is true", { case: "boolParam", value: true }),
  asClasses("a number of classes without a sign", { case: "uint64Param", value: 1n }),
]

export const grpc: ReadonlyArray<GrpcCase> = [...services, ...contents, ...parameters]
