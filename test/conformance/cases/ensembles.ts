/** Ensembles of a repository: what they answer and how they fail, in every encoding; decoupled ones where responses are streamed. */
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { type GrpcCase, type HttpCase, http, type InferCase, rpc } from "../Case.ts"
import { type InferRequest, tensor } from "../InferRequest.ts"

const on = { proves: ["C37"], server: "stored" } as const

const x = (...rows: ReadonlyArray<number>) => tensor("X", "FP32", [rows.length, 1], rows)
const y = (...rows: ReadonlyArray<number>) => tensor("Y", "FP32", [rows.length, 1], rows)

const answers = (
  name: string,
  request: InferRequest,
  ...outputs: ReadonlyArray<ReturnType<typeof tensor>>
): InferCase => ({
  ...on,
  name: `ensemble: ${name}`,
  request,
  expected: { outputs },
})

const refuses = (name: string, request: InferRequest, error: string): InferCase => ({
  ...on,
  name: `ensemble: ${name}`,
  request,
  expected: { tag: "InvalidRequest", error },
})

const pair = (name: string, ...elements: ReadonlyArray<number>) => tensor(name, "INT32", [1, 2], elements)

const unknown = "[request id: <id_unknown>] "

export const ensembles: ReadonlyArray<InferCase> = [
  answers("one step after the other", { model: "in_steps", inputs: [x(0, 5, -1)] }, y(2, 7, 1)),
  answers("an ensemble as a step", { model: "of_ensembles", inputs: [x(0.5)] }, y(4.5)),
  answers(
    "tensors of two steps meet",
    { model: "diamond", inputs: [pair("A", 5, 1), pair("B", 3, 2)] },
    pair("TWICE_A", 10, 2),
    pair("TWICE_B", 6, 4),
  ),
  answers(
    "one of the outputs",
    { model: "diamond", inputs: [pair("A", 5, 1), pair("B", 3, 2)], outputs: [{ name: "TWICE_B" }] },
    pair("TWICE_B", 6, 4),
  ),
  answers(
    "an optional input that is given",
    { model: "optional_step", inputs: [x(1), tensor("Z", "FP32", [1, 1], [5])] },
    y(6),
  ),
  answers("an optional input that is left out", { model: "optional_step", inputs: [x(1)] }, y(101)),
  answers(
    "a step with batches, for one without",
    { model: "without_batch", inputs: [tensor("X", "FP32", [1, 2, 3], [1, 2, 3, 4, 5, 6])] },
    tensor("Y", "FP32", [1, 2, 3], [1, 2, 3, 4, 5, 6]),
  ),
  refuses(
    "more rows than it takes",
    { model: "in_steps", inputs: [x(1, 2, 3, 4, 5)] },
    `${unknown}inference request batch-size must be <= 4 for 'in_steps'`,
  ),
  refuses(
    "a shape that a step does not take",
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
      body: ["2", "3", "4"].map((y) => `data: {"model_name":"streaming","model_version":"1","Y":${y}}\n\n`).join(""),
    },
    on,
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

export const ensemblesGrpc: ReadonlyArray<GrpcCase> = [
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
