/**
 * Execution settings of a repository's configurations, checked by single requests: decoupled models, warm-ups, and the
 * configurations that the server reports.
 */
import type { MessageInitShape } from "@bufbuild/protobuf"
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import { GRPCInferenceService, type InferParameterSchema } from "@nereid/protocol/grpc_service"
import { type GrpcCase, type HttpCase, type HttpExpected, http, type InferCase, rpc } from "../Case.ts"
import { tensor } from "../InferRequest.ts"
import { generate } from "./generate.ts"
import { decoupled, decoupledHttp } from "./streams.ts"

const stored = { server: "stored" } as const

/** The same case, of the model that has the name of one in code. */
const inRepository = <C extends GrpcCase | HttpCase>(one: C): C => ({
  ...one,
  ...stored,
  name: `of a repository: ${one.name}`,
})

const isDecoupled = ({ steps }: HttpCase) =>
  steps.some(([request]) => typeof request === "object" && "path" in request && request.path.includes("/counts/"))

const seen = ["1,2: 0,0 ''", "3,2: 5,7,5,7,5,7 'a b' 'a b' 'a b'", "3,2: 5,7,5,7,5,7 'a b' 'a b' 'a b'", "4,2"].join(
  "; ",
)

export const storedScheduling: ReadonlyArray<InferCase> = [
  {
    ...stored,
    name: "a ragged input has as many dims as its configuration",
    proves: ["C18"],
    request: { model: "ragged", inputs: [tensor("X", "FP32", [1, 1, 2], [1, 2])] },
    expected: {
      tag: "InvalidRequest",
      error:
        /^\[request id: <id_unknown>\] unexpected shape for input 'X' for model 'ragged'\. Expected \[-1,-1\], got \[1,1,2\]/,
    },
  },
  {
    ...stored,
    name: "warm-ups are executed before the first request, batch by batch",
    proves: ["C36", "A11.warm-up.zero", "A11.warm-up.random", "A11.warm-up.file", "A11.warm-up.batch"],
    request: {
      model: "warmed",
      inputs: [tensor("X", "INT32", [1, 2], [1, 2]), tensor("TEXT", "BYTES", [1, 1], ["c"])],
    },
    expected: { outputs: [tensor("SEEN", "BYTES", [1, 1], [seen])] },
  },
]

const number = "attempt to access JSON non-unsigned-integer as unsigned-integer"

/** A request to a model with levels, whose parameter is this JSON. */
const httpCase = (parameter: "priority" | "timeout", value: string, expected: HttpExpected): HttpCase =>
  http(
    `a ${parameter} of ${value}`,
    {
      path: "/v2/models/policies/infer",
      body: `{"parameters":{"${parameter}":${value}},"inputs":[{"name":"X","datatype":"FP32","shape":[1,1],"data":[1]}]}`,
    },
    expected,
    { ...stored, proves: ["C15", "C36"] },
  )

const parametersHttp: ReadonlyArray<HttpCase> = (["priority", "timeout"] as const).flatMap((name) => [
  ...['"1"', "-1", "1.5", "true"].map((value) =>
    httpCase(name, value, { status: 400, error: `Unable to parse '${name}': ${number}` }),
  ),
  httpCase(name, "18446744073709551615", { status: 200 }),
])

/** Of the model that is there, with a warm-up that it cannot take. */
const failingWarmUp = JSON.stringify({
  backend: "nereid",
  max_batch_size: 4,
  input: [{ name: "X", data_type: "TYPE_FP32", dims: [1] }],
  output: [{ name: "Y", data_type: "TYPE_FP32", dims: [1] }],
  model_warmup: [{ name: "w", batch_size: 1, inputs: { X: { data_type: "TYPE_INT32", dims: [1], zero_data: true } } }],
})

const hasFailed =
  /^load failed for model 'policies': version 1 is at UNAVAILABLE state: Invalid argument: \[request id: <id_unknown>\] inference input 'X' data-type is 'INT32', but model 'policies' expects 'FP32';$/

export const storedSchedulingHttp: ReadonlyArray<HttpCase> = [
  ...[...decoupledHttp, ...generate.filter(isDecoupled)].map(inRepository),
  ...parametersHttp,
  {
    ...stored,
    name: "load: a warm-up that fails leaves the model that was there",
    proves: ["C33", "C36"],
    steps: [
      [
        {
          path: "/v2/repository/models/policies/load",
          body: JSON.stringify({ parameters: { config: failingWarmUp } }),
        },
        { status: 400, error: hasFailed },
      ],
      [{ path: "/v2/models/policies/ready" }, { status: 200, body: "" }],
      [{ path: "/v2/models/policies/config" }, { status: 200, body: /"priority_levels":3.*"model_warmup":\[\]/ }],
    ],
  },
  http(
    "a model is ready once its warm-ups are done",
    { path: "/v2/models/warmed/ready" },
    { status: 200, body: "" },
    { ...stored, proves: ["C1"] },
  ),
  http(
    "warm-ups are in no statistics",
    { path: "/v2/models/warmed/stats" },
    {
      status: 200,
      body: /^\{"model_stats":\[\{"name":"warmed","version":"1","last_inference":0,"inference_count":0,"execution_count":0,"inference_stats":\{"success":\{"count":0,"ns":0\},.*"batch_stats":\[\]/,
    },
    { ...stored, proves: ["C38"] },
  ),
  http(
    "configuration: a scheduler with all of its policies, and a cache",
    { path: "/v2/models/policies/config" },
    {
      status: 200,
      body: /"dynamic_batching":\{"preferred_batch_size":\[2,4\],"max_queue_delay_microseconds":100,"preserve_ordering":false,"priority_levels":3,"default_priority_level":2,"default_queue_policy":\{"timeout_action":"DELAY","default_timeout_microseconds":5,"allow_timeout_override":true,"max_queue_size":7\},"priority_queue_policy":\{"1":\{"timeout_action":"REJECT","default_timeout_microseconds":0,"allow_timeout_override":false,"max_queue_size":1\}\}.*"response_cache":\{"enable":true\}/,
    },
    { ...stored, proves: ["C4", "C36"] },
  ),
]

const { method } = GRPCInferenceService

type Choice = NonNullable<MessageInitShape<typeof InferParameterSchema>["parameterChoice"]>

const grpcCase = (parameter: "priority" | "timeout", choice: Choice, error?: string): GrpcCase =>
  rpc(
    `a ${parameter} of ${choice.case} ${choice.value}`,
    method.modelInfer,
    {
      modelName: "policies",
      parameters: { [parameter]: { parameterChoice: choice } },
      inputs: [{ name: "X", datatype: "FP32", shape: [1n, 1n] }],
      rawInputContents: [new Uint8Array(Float32Array.of(1).buffer)],
    },
    error === undefined ? { code: 0 } : { code: GrpcCode.INVALID_ARGUMENT, message: error },
    { ...stored, proves: ["C36"] },
  )

const wrongType = (parameter: string, expected: string) =>
  `invalid value type for '${parameter}' parameter, expected ${expected}.`

const belowNothing = (parameter: string) => `invalid value '-1' for '${parameter}' parameter, expected value >= 0.`

const parametersGrpc: ReadonlyArray<GrpcCase> = [
  grpcCase("priority", { case: "int64Param", value: 1n }),
  grpcCase("priority", { case: "uint64Param", value: 2n ** 64n - 1n }),
  grpcCase("timeout", { case: "int64Param", value: 2n ** 63n - 1n }),
  grpcCase("priority", { case: "int64Param", value: -1n }, belowNothing("priority")),
  grpcCase("timeout", { case: "int64Param", value: -1n }, belowNothing("timeout")),
  grpcCase("timeout", { case: "uint64Param", value: 1n }, wrongType("timeout", "int64_param")),
  ...(
    [
      { case: "stringParam", value: "1" },
      { case: "boolParam", value: true },
      { case: "doubleParam", value: 1 },
    ] as const
  ).flatMap((choice) => [
    grpcCase("priority", choice, wrongType("priority", "int64_param or uint64_param")),
    grpcCase("timeout", choice, wrongType("timeout", "int64_param")),
  ]),
]

export const storedSchedulingGrpc: ReadonlyArray<GrpcCase> = [
  ...decoupled.map(inRepository),
  ...parametersGrpc,
  rpc(
    "a warm-up that fails",
    method.repositoryModelLoad,
    {
      modelName: "policies",
      parameters: { config: { parameterChoice: { case: "stringParam", value: failingWarmUp } } },
    },
    { code: GrpcCode.INVALID_ARGUMENT, message: hasFailed },
    { ...stored, proves: ["C33", "C36"] },
  ),
  rpc(
    "once its warm-ups are done",
    method.modelReady,
    { name: "warmed" },
    { code: 0, replies: ['{"ready":true}'] },
    { ...stored, proves: ["C1"] },
  ),
  rpc(
    "warm-ups are not counted",
    method.modelStatistics,
    { name: "warmed" },
    {
      code: 0,
      replies: [/^\{"modelStats":\[\{"name":"warmed","version":"1","inferenceStats":\{"success":\{\},"fail":\{\}/],
    },
    { ...stored, proves: ["C38"] },
  ),
  rpc(
    "a scheduler with all of its policies, and a cache",
    method.modelConfig,
    { name: "policies" },
    {
      code: 0,
      replies: [
        /"dynamicBatching":\{"preferredBatchSize":\[2,4\],"maxQueueDelayMicroseconds":"100","priorityLevels":"3","defaultPriorityLevel":"2","defaultQueuePolicy":\{"timeoutAction":"DELAY","defaultTimeoutMicroseconds":"5","allowTimeoutOverride":true,"maxQueueSize":7\},"priorityQueuePolicy":\{"1":\{"maxQueueSize":1\}\}\}.*"responseCache":\{"enable":true\}/,
      ],
    },
    { ...stored, proves: ["C4", "C36"] },
  ),
]
