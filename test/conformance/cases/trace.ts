/** The trace settings over both protocols: read, changed, put back, refused. */
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { type GrpcCase, type HttpCase, http, rpc } from "../Case.ts"

const { traceSetting } = GRPCInferenceService.method

const proves = { proves: ["C39"] } as const

const path = "/v2/trace/setting"
const ofModel = "/v2/models/simple/trace/setting"

const is = (...settings: ReadonlyArray<string>) => ({
  status: 200,
  body: new RegExp(settings.map((setting) => `(?=.*${setting.replaceAll("[", String.raw`\[`)})`).join("")),
})

const refused = (body: string, status: number, error: string | RegExp): HttpCase =>
  http(`trace settings as ${body}`, { path, body }, { status, error }, proves)

export const traceHttp: ReadonlyArray<HttpCase> = [
  http(
    "trace settings",
    { path },
    is('"trace_level":["OFF"]', '"trace_rate":"1000"', '"trace_count":"-1"', '"log_frequency":"0"'),
    proves,
  ),
  http("trace settings of a model", { path: ofModel }, is('"trace_level":["OFF"]', '"trace_rate":"1000"'), proves),
  {
    name: "trace settings are changed for all, for one model, and put back",
    ...proves,
    steps: [
      [{ path, body: '{"trace_rate":"7"}' }, is('"trace_rate":"7"')],
      [{ path: ofModel }, is('"trace_rate":"7"')],
      [{ path: ofModel, body: '{"trace_rate":"3"}' }, is('"trace_rate":"3"')],
      [{ path }, is('"trace_rate":"7"')],
      [{ path: ofModel, body: '{"trace_rate":null}' }, is('"trace_rate":"7"')],
      [{ path, body: '{"trace_rate":null}' }, is('"trace_rate":"1000"')],
    ],
  },
  http(
    "trace settings of a model that is not there",
    { path: "/v2/models/no/trace/setting" },
    { status: 400, error: "Request for unknown model : no" },
    { proves: ["C39", "C16"] },
  ),
  http(
    "trace settings for a model that is not there, before the body is read",
    { path: "/v2/models/no/trace/setting", body: "{" },
    { status: 400, error: "Request for unknown model : no" },
    { proves: ["C39", "C16"] },
  ),
  {
    name: "unknown trace settings are ignored",
    ...proves,
    steps: [[{ path, body: '{"trace_x":"1","trace_mode":"x"}' }, is('"trace_rate":"1000"', '"trace_mode":"triton"')]],
  },
  refused('{"trace_file":"x"}', 501, "trace file location can not be updated through network protocol"),
  refused('{"trace_rate":"x"}', 400, "Unable to parse 'trace_rate', got: x"),
  refused('{"trace_file":null}', 501, "trace file location can not be updated through network protocol"),
  refused('{"trace_count":"-2"}', 400, "Unable to parse 'trace_count'. Expecting value >= -1, got:-2"),
  refused(
    '{"trace_count":"-2147483649"}',
    400,
    "Unable to parse 'trace_count', value is out of range [ -1, 2147483647 ], got: -2147483649",
  ),
  refused('{"trace_count":"-2","trace_rate":"x"}', 400, "Unable to parse 'trace_rate', got: x"),
  refused('{"trace_level":["NONE"]}', 400, "Unable to parse 'trace_level', got: NONE"),
  refused('{"trace_rate":1}', 400, /^Unable to parse 'trace_rate': attempt to access JSON non-string as string/),
  refused('{"trace_level":"OFF"}', 400, /^Unable to parse 'trace_level': attempt to access JSON non-array as array/),
  refused("{", 400, /^failed to parse the request JSON buffer/),
]

export const traceGrpc: ReadonlyArray<GrpcCase> = [
  rpc(
    "as they are",
    traceSetting,
    {},
    { code: 0, replies: [/"trace_rate":\{"value":\["1000"\]\}/] },
    { proves: ["C39", "C22"] },
  ),
  rpc(
    "of a model",
    traceSetting,
    { modelName: "simple" },
    { code: 0, replies: [/"trace_level":\{"value":\["OFF"\]\}/] },
    proves,
  ),
  rpc(
    "of no model",
    traceSetting,
    { modelName: "no" },
    { code: GrpcCode.INVALID_ARGUMENT, message: "Request for unknown model : no" },
    proves,
  ),
  rpc(
    "of no model, before the settings are read",
    traceSetting,
    { modelName: "no", settings: { trace_count: { value: ["-2"] } } },
    { code: GrpcCode.INVALID_ARGUMENT, message: "Request for unknown model : no" },
    proves,
  ),
  rpc(
    "unknown ones, ignored",
    traceSetting,
    { settings: { trace_x: { value: ["1", "2"] } } },
    { code: 0, replies: [/"trace_rate":\{"value":\["1000"\]\}/] },
    proves,
  ),
  rpc(
    "a negative count",
    traceSetting,
    { settings: { trace_count: { value: ["-2"] } } },
    { code: GrpcCode.INVALID_ARGUMENT, message: "Unable to parse 'trace_count'. Expecting value >= -1, got: -2" },
    proves,
  ),
  rpc(
    "the file",
    traceSetting,
    { settings: { trace_file: { value: ["x"] } } },
    { code: GrpcCode.UNIMPLEMENTED, message: "trace file location can not be updated through network protocol" },
    proves,
  ),
  rpc(
    "an invalid rate",
    traceSetting,
    { settings: { trace_rate: { value: ["x"] } } },
    { code: GrpcCode.INVALID_ARGUMENT, message: "Unable to parse 'trace_rate', got: x" },
    proves,
  ),
]
