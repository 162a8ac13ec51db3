/**
 * ModelStreamInfer: several requests on one stream, decoupled models, errors in band and as the stream's own. gRPC
 * only.
 */
import { create, toBinary } from "@bufbuild/protobuf"
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import { GRPCInferenceService, ModelInferRequestSchema } from "@nereid/protocol/grpc_service"
import type { Line } from "../Acceptance.ts"
import { type GrpcCase, type GrpcExpected, type HttpCase, http } from "../Case.ts"
import { frame, message } from "../GrpcEncoding.ts"
import { type Parameters, tensor } from "../InferRequest.ts"
import { noWayDown } from "../Models.ts"

const { modelStreamInfer } = GRPCInferenceService.method

const requestFrame = (model: string, x: number, id: string, parameters: Parameters = {}) =>
  frame(
    toBinary(
      ModelInferRequestSchema,
      message({ model, id, parameters, inputs: [tensor("X", "INT32", [1], [x])] }, "gRPC raw"),
    ),
  )

/** A request of several rows to the model `apart`. */
const rowsFrame = (rows: ReadonlyArray<number>, id: string) =>
  frame(
    toBinary(
      ModelInferRequestSchema,
      message({ model: "apart", id, inputs: [tensor("X", "INT32", [rows.length, 1], rows)] }, "gRPC raw"),
    ),
  )

const on = (
  name: string,
  line: Line,
  chunks: ReadonlyArray<Uint8Array>,
  expected: GrpcExpected,
  headers: { readonly [name: string]: string } = {},
): GrpcCase => ({
  name: `stream: ${name}`,
  proves: [line],
  call: { method: "ModelStreamInfer", chunks, headers },
  expected,
  output: modelStreamInfer.output,
})

const final = (isFinal: boolean) => `"parameters":\\{"triton_final_response":\\{"boolParam":${isFinal}\\}\\}`

const base64 = (x: number) =>
  Buffer.from(Int32Array.of(x).buffer)
    .toString("base64")
    .replaceAll("+", String.raw`\+`)

/** A reply of a model that answers with one number. */
const number = (model: string, id: string, x: number, isFinal = true) =>
  new RegExp(
    `^\\{"inferResponse":\\{"modelName":"${model}","modelVersion":"1","id":"${id}",${final(isFinal)},"outputs":.*"rawOutputContents":\\["${base64(x)}"\\]`,
  )

/** Without outputs. */
const noResponse = (model: string, id: string) =>
  new RegExp(`^\\{"inferResponse":\\{"modelName":"${model}","modelVersion":"1","id":"${id}",${final(true)}\\}\\}$`)

const failed = (id: string, text: string) => {
  const quoted = text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
  return new RegExp(`^\\{"errorMessage":"${quoted}","inferResponse":\\{"id":"${id}",${final(true)}\\}\\}$`)
}

const unknown = "Request for unknown model: 'no' is not found"

const inOrder: ReadonlyArray<GrpcCase> = [
  on("no requests", "C26", [], { code: 0, replies: [] }),
  on("one request", "C26", [requestFrame("single_int32", 7, "a")], {
    code: 0,
    replies: [number("single_int32", "a", 7)],
  }),
  on(
    "a request in two parts",
    "C26",
    [requestFrame("single_int32", 7, "a").subarray(0, 9), requestFrame("single_int32", 7, "a").subarray(9)],
    {
      code: 0,
      replies: [number("single_int32", "a", 7)],
    },
  ),
  on(
    "fifty requests, all answered in their order behind the half-close",
    "C26",
    Array.from({ length: 50 }, (_, index) => requestFrame("single_int32", index, String(index))),
    { code: 0, replies: Array.from({ length: 50 }, (_, index) => number("single_int32", String(index), index)) },
  ),
  on("requests without ids", "C26", [requestFrame("single_int32", 1, ""), requestFrame("single_int32", 2, "")], {
    code: 0,
    replies: [/"rawOutputContents":\["AQAAAA=="\]/, /"rawOutputContents":\["AgAAAA=="\]/],
  }),
  on(
    "an error among answers, and the stream goes on",
    "C26",
    [requestFrame("single_int32", 1, "a"), requestFrame("no", 2, "b"), requestFrame("single_int32", 3, "c")],
    {
      code: 0,
      replies: [number("single_int32", "a", 1), failed("b", unknown), number("single_int32", "c", 3)],
    },
  ),
  on("an error of validation has its prefix", "C26", [requestFrame("single_fp32", 1, "a")], {
    code: 0,
    replies: [
      failed("a", "[request id: a] inference input 'X' data-type is 'INT32', but model 'single_fp32' expects 'FP32'"),
    ],
  }),
  on(
    "an unreadable request is a separate error",
    "C26",
    [
      frame(
        toBinary(
          ModelInferRequestSchema,
          create(ModelInferRequestSchema, { modelName: "single_int32", id: "a", inputs: [{ name: "X" }] }),
        ),
      ),
      requestFrame("single_int32", 3, "c"),
    ],
    {
      code: 0,
      replies: [
        /^\{"errorMessage":"unable to find data for input tensor 'X' for model 'single_int32' in request\."/,
        number("single_int32", "c", 3),
      ],
    },
  ),
]

/** Of the model `counts`. */
export const decoupled: ReadonlyArray<GrpcCase> = [
  on("three responses to one request", "C27", [requestFrame("counts", 3, "a")], {
    code: 0,
    replies: [1, 2, 3].map((x) => number("counts", "a", x, false)),
  }),
  on(
    "three responses and an empty last one",
    "C27",
    [requestFrame("counts", 3, "a", { triton_enable_empty_final_response: true })],
    {
      code: 0,
      replies: [...[1, 2, 3].map((x) => number("counts", "a", x, false)), noResponse("counts", "a")],
    },
  ),
  on("all rows of a request, then each by itself", "C27", [rowsFrame([1, 1], "a")], {
    code: 0,
    replies: [
      new RegExp(`"shape":\\["2","1"\\].*"rawOutputContents":\\["AQAAAAEAAAA="\\]`),
      ...[1, 1].map((x) => number("apart", "a", x, false)),
    ],
  }),
  on("more rows than the model takes", "C27", [rowsFrame([1, 2, 3, 4, 5], "a")], {
    code: 0,
    replies: [failed("a", "[request id: a] inference request batch-size must be <= 4 for 'apart'")],
  }),
  on("no response at all", "C27", [requestFrame("counts", 0, "a")], { code: 0, replies: [] }),
  on(
    "no response but the empty last one",
    "C27",
    [requestFrame("counts", 0, "a", { triton_enable_empty_final_response: true })],
    {
      code: 0,
      replies: [noResponse("counts", "a")],
    },
  ),
  on("a failure behind two responses", "C27", [requestFrame("counts", -2, "a")], {
    code: 0,
    replies: [number("counts", "a", 1, false), number("counts", "a", 2, false), failed("a", noWayDown)],
  }),
  {
    name: "unary inference of a decoupled model",
    proves: ["C25"],
    call: { chunks: [requestFrame("counts", 1, "a")] },
    expected: {
      code: GrpcCode.UNIMPLEMENTED,
      message: "ModelInfer RPC doesn't support models with decoupled transaction policy",
      tag: "Unsupported",
    },
  },
]

const errorMode: ReadonlyArray<GrpcCase> = [
  on(
    "the first error ends the stream where that is asked for",
    "C27",
    [requestFrame("single_int32", 1, "a"), requestFrame("no", 2, "b"), requestFrame("single_int32", 3, "c")],
    { code: GrpcCode.NOT_FOUND, message: unknown, tag: "ModelNotFound", replies: [number("single_int32", "a", 1)] },
    { triton_grpc_error: "true" },
  ),
  on(
    "errors stay in band where triton_grpc_error is false",
    "C27",
    [requestFrame("no", 2, "b")],
    { code: 0, replies: [failed("b", unknown)] },
    {
      triton_grpc_error: "false",
    },
  ),
]

const broken: ReadonlyArray<GrpcCase> = [
  on(
    "bytes that are no message, behind an answer",
    "C26",
    [requestFrame("single_int32", 1, "a"), frame(Uint8Array.of(0xff))],
    {
      code: GrpcCode.INTERNAL,
    },
  ),
  on(
    "a deadline that has passed",
    "C28",
    [requestFrame("stuck", 1, "a")],
    { code: GrpcCode.DEADLINE_EXCEEDED },
    { "grpc-timeout": "20m" },
  ),
]

export const streams: ReadonlyArray<GrpcCase> = [...inOrder, ...decoupled, ...errorMode, ...broken]

/** HTTP responses for a decoupled model. */
export const decoupledHttp: ReadonlyArray<HttpCase> = [
  http(
    "inference of a decoupled model",
    { path: "/v2/models/counts/infer", body: '{"inputs":[{"name":"X","datatype":"INT32","shape":[1],"data":[1]}]}' },
    {
      status: 501,
      error: "HTTP end point doesn't support models with decoupled transaction policy",
      tag: "Unsupported",
    },
    { proves: ["C25"] },
  ),
  http(
    "the configuration of a decoupled model",
    { path: "/v2/models/counts/config" },
    { status: 200, body: /"model_transaction_policy":\{"decoupled":true\}/ },
    { proves: ["C4"] },
  ),
]
