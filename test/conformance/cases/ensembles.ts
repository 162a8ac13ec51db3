/**
 * Ensembles of a repository: what they answer and how they fail, in every encoding; decoupled ones where responses are
 * streamed.
 */
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import { GRPCInferenceService, ModelStreamInferResponseSchema } from "@nereid/protocol/grpc_service"
import { type Claim, type GrpcCase, type HttpCase, http, type InferCase, rpc } from "../Case.ts"
import { encode } from "../GrpcEncoding.ts"
import { type InferRequest, tensor } from "../InferRequest.ts"

const on = { proves: ["C37"], server: "stored" } as const

const x = (...rows: ReadonlyArray<number>) => tensor("X", "FP32", [rows.length, 1], rows)
const y = (...rows: ReadonlyArray<number>) => tensor("Y", "FP32", [rows.length, 1], rows)

const outputsCase = (
  name: string,
  proves: Claim,
  request: InferRequest,
  ...outputs: ReadonlyArray<ReturnType<typeof tensor>>
): InferCase => ({
  ...on,
  proves: ["C37", proves],
  name: `ensemble: ${name}`,
  request,
  expected: { outputs },
})

const refusalCase = (name: string, proves: Claim, request: InferRequest, error: string): InferCase => ({
  ...on,
  proves: ["C37", proves],
  name: `ensemble: ${name}`,
  request,
  expected: { tag: "InvalidRequest", error },
})

const pair = (name: string, ...elements: ReadonlyArray<number>) => tensor(name, "INT32", [1, 2], elements)

const noSequence = '"sequence_id":0,"sequence_start":false,"sequence_end":false'

const unknown = "[request id: <id_unknown>] "

export const ensembles: ReadonlyArray<InferCase> = [
  outputsCase(
    "one step after the other",
    "A11.ensemble.steps",
    { model: "in_steps", inputs: [x(0, 5, -1)] },
    y(2, 7, 1),
  ),
  outputsCase("an ensemble as a step", "A11.ensemble.nested", { model: "of_ensembles", inputs: [x(0.5)] }, y(4.5)),
  outputsCase(
    "tensors of two steps meet",
    "A11.ensemble.outputs",
    { model: "diamond", inputs: [pair("A", 5, 1), pair("B", 3, 2)] },
    pair("TWICE_A", 10, 2),
    pair("TWICE_B", 6, 4),
  ),
  outputsCase(
    "one of the outputs",
    "A11.ensemble.outputs",
    { model: "diamond", inputs: [pair("A", 5, 1), pair("B", 3, 2)], outputs: [{ name: "TWICE_B" }] },
    pair("TWICE_B", 6, 4),
  ),
  outputsCase(
    "an optional input that is given",
    "A11.ensemble.optional",
    { model: "optional_step", inputs: [x(1), tensor("Z", "FP32", [1, 1], [5])] },
    y(6),
  ),
  outputsCase(
    "an optional input that is left out",
    "A11.ensemble.optional",
    { model: "optional_step", inputs: [x(1)] },
    y(101),
  ),
  outputsCase(
    "a step with batches, for one without",
    "A11.ensemble.steps",
    { model: "without_batch", inputs: [tensor("X", "FP32", [1, 2, 3], [1, 2, 3, 4, 5, 6])] },
    tensor("Y", "FP32", [1, 2, 3], [1, 2, 3, 4, 5, 6]),
  ),
  refusalCase(
    "more rows than it takes",
    "A11.max-batch-size",
    { model: "in_steps", inputs: [x(1, 2, 3, 4, 5)] },
    `${unknown}inference request batch-size must be <= 4 for 'in_steps'`,
  ),
  refusalCase(
    "a shape that a step does not take",
    "A11.ensemble.error",
    { model: "open_shape", inputs: [tensor("X", "FP32", [1, 1], [1])] },
    `in ensemble 'open_shape', ${unknown}unexpected shape for input 'X' for model 'fixed'. Expected [2,3], got [1,1].`,
  ),
]

export const ensemblesHttp: ReadonlyArray<HttpCase> = [
  http(
    "ensemble: a decoupled step, streamed",
    { path: "/v2/models/streaming/generate_stream", body: '{"X":3}' },
    {
      status: 200,
      body: ["2", "3", "4"]
        .map((y) => `data: {"model_name":"streaming","model_version":"1","Y":${y},${noSequence}}\n\n`)
        .join(""),
    },
    { ...on, proves: ["C37", "A11.ensemble.decoupled"] },
  ),
  http(
    "a decoupled script, streamed",
    { path: "/v2/models/counting/generate_stream", body: '{"X":2}' },
    {
      status: 200,
      body: ["1", "2"].map((y) => `data: {"model_name":"counting","model_version":"1","Y":${y}}\n\n`).join(""),
    },
    { ...on, proves: ["C31", "A11.decoupled", "A12.script.decoupled"] },
  ),
  http(
    "a decoupled script that fails, streamed",
    { path: "/v2/models/counting/generate_stream", body: '{"X":9}' },
    {
      status: 200,
      body: /"Y":3\}\n\ndata: \{"error":"[^"]*it is enough"\}\n\n$/,
    },
    { ...on, proves: ["C31", "A12.script.decoupled.error"] },
  ),
  http(
    "a decoupled script is no unary model",
    {
      path: "/v2/models/counting/infer",
      body: '{"inputs":[{"name":"X","datatype":"FP32","shape":[1,1],"data":[3]}]}',
    },
    { status: 501, error: "HTTP end point doesn't support models with decoupled transaction policy" },
    { ...on, proves: ["C25", "A11.decoupled.unary"] },
  ),
  http(
    "a script's parameters of a response",
    {
      path: "/v2/models/told/infer",
      body: '{"inputs":[{"name":"X","datatype":"BYTES","shape":[1,1],"data":["x"]}]}',
    },
    { status: 200, shows: { parameters: { seen: true } } },
    { ...on, proves: ["C21", "A12.script.response-parameters"] },
  ),
  http(
    "ensemble: a decoupled step makes it decoupled",
    {
      path: "/v2/models/streaming/infer",
      body: '{"inputs":[{"name":"X","datatype":"FP32","shape":[1,1],"data":[3]}]}',
    },
    { status: 501, error: "HTTP end point doesn't support models with decoupled transaction policy" },
    on,
  ),
  http(
    "ensemble: its platform",
    { path: "/v2/models/in_steps" },
    {
      status: 200,
      body: '{"name":"in_steps","versions":["1"],"platform":"ensemble","inputs":[{"name":"X","datatype":"FP32","shape":[-1,1]}],"outputs":[{"name":"Y","datatype":"FP32","shape":[-1,1]}]}',
    },
    { ...on, proves: ["C37", "C3"] },
  ),
]

const request = (request: InferRequest) => [encode(request, "gRPC raw")]

const streamed = (
  name: string,
  request: InferRequest,
  proves: ReadonlyArray<Claim>,
  ...replies: ReadonlyArray<RegExp>
): GrpcCase => ({
  ...on,
  name: `ModelStreamInfer: ${name}`,
  proves: ["C26", ...proves],
  call: { method: "ModelStreamInfer", chunks: [encode(request, "gRPC stream")] },
  expected: { code: 0, replies },
  output: ModelStreamInferResponseSchema,
})

/** A reply with one FP32 element. */
const reply = (element: number) =>
  new RegExp(`"rawOutputContents":\\["${Buffer.from(Float32Array.of(element).buffer).toString("base64")}"\\]`)

const finality = (isFinal: boolean) => new RegExp(`"triton_final_response":\\{"boolParam":${isFinal}\\}.*"outputs"`)

export const ensemblesGrpc: ReadonlyArray<GrpcCase> = [
  streamed(
    "a decoupled step",
    { model: "streaming", inputs: [x(2)] },
    ["C37", "A11.ensemble.decoupled"],
    reply(2),
    reply(3),
  ),
  streamed(
    "the last response after a decoupled step is final, without an empty one",
    { model: "streaming", inputs: [x(2)], parameters: { triton_enable_empty_final_response: true } },
    ["A11.ensemble.decoupled"],
    finality(false),
    finality(true),
  ),
  streamed(
    "a decoupled last step has an empty final response",
    { model: "streaming_last", inputs: [x(1)], parameters: { triton_enable_empty_final_response: true } },
    ["A11.ensemble.decoupled"],
    finality(false),
    finality(false),
    /^(?!.*"outputs").*"triton_final_response":\{"boolParam":true\}/,
  ),
  streamed(
    "a decoupled script",
    { model: "counting", inputs: [x(2)] },
    ["A11.decoupled", "A12.script.decoupled"],
    reply(1),
    reply(2),
  ),
  streamed(
    "a decoupled script that fails",
    { model: "counting", inputs: [x(9)] },
    ["A12.script.decoupled.error"],
    reply(1),
    reply(2),
    reply(3),
    /"errorMessage":"[^"]*it is enough"/,
  ),
  {
    ...on,
    name: "a decoupled script is no unary model",
    proves: ["C25", "A11.decoupled.unary"],
    call: { chunks: request({ model: "counting", inputs: [x(3)] }) },
    expected: {
      code: GrpcCode.UNIMPLEMENTED,
      message: "ModelInfer RPC doesn't support models with decoupled transaction policy",
    },
  },
  {
    ...on,
    name: "a script's parameters of a response",
    proves: ["C21", "A12.script.response-parameters"],
    call: { chunks: request({ model: "told", inputs: [tensor("X", "BYTES", [1, 1], ["x"])] }) },
    expected: { code: 0, shows: { parameters: { seen: { bool_param: true } } } },
  },
  rpc(
    "ensemble: its configuration",
    GRPCInferenceService.method.modelConfig,
    { name: "in_steps" },
    {
      code: 0,
      replies: [
        /"platform":"ensemble".*"ensembleScheduling":\{"step":\[\{"modelName":"bare","modelVersion":"-1","inputMap":\{"X":"between"\},"outputMap":\{"Y":"Y"\}\}/,
      ],
    },
    { ...on, proves: ["C37", "C4"] },
  ),
]
