/** Loads and unloads by clients: rejected requests, and requests without effect. */
import type { MessageInitShape } from "@bufbuild/protobuf"
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { type Claim, type GrpcCase, type GrpcExpected, type HttpCase, type HttpExpected, http, rpc } from "../Case.ts"
import { addSub } from "../../fixtures/onnx.ts"
import type { BrokenModel } from "../BrokenModel.ts"
import { broken } from "../StoredRefusals.ts"
import { escaped, on } from "./stored.ts"

const { method } = GRPCInferenceService

type Parameters = { readonly [name: string]: string | boolean | number | Uint8Array }

interface Refusal {
  readonly name: string
  readonly model: string
  readonly operation: "load" | "unload"
  readonly parameters?: Parameters
  readonly error: string | RegExp
  readonly internal?: boolean
  readonly proves: ReadonlyArray<Claim>
}

const traversal = (name: string) =>
  `invalid model name '${name}', model name must not contain path traversal characters`

const loadFailed = (model: string, found: BrokenModel): RegExp => {
  const { reason, isUnreadable = false, isWhole = false, status } = found
  const prefix = isUnreadable
    ? `failed to load '${model}', failed to poll from model repository`
    : `load failed for model '${model}'`
  const version = status === undefined ? "" : `version 1 is at UNAVAILABLE state: ${status}: `
  const before = isWhole || status !== undefined ? version : ".*"
  const after = isWhole ? (status === undefined ? "$" : ";$") : ""
  return new RegExp(`^${prefix}: ${before}(${reason instanceof RegExp ? reason.source : escaped(reason)})${after}`)
}

const file = addSub("FP32", ["n", 2])

/** Loads and unloads that both protocols reject, with the same message. */
const refusals: ReadonlyArray<Refusal> = [
  {
    name: "a model that is not there",
    model: "no",
    operation: "load",
    error: "failed to load 'no', failed to poll from model repository",
    internal: true,
    proves: ["A6.load.unknown"],
  },
  ...(["..", " ..", ". ", "a/b", "a\\b", "../fixed"] as const).flatMap((model) =>
    (["load", "unload"] as const).map((operation): Refusal => ({
      name: `the name ${model}`,
      model,
      operation,
      error: traversal(model),
      proves: ["A6.name.traversal"],
    })),
  ),
  ...(["load", "unload"] as const).map((operation): Refusal => ({
    name: "a name of spaces",
    model: "  ",
    operation,
    error: "Model name cannot be empty. Please enter a valid name to deploy.",
    proves: ["A6.name.traversal"],
  })),
  ...Object.entries(broken).map(([model, found]): Refusal => ({
    name: `again: ${model}`,
    model,
    operation: "load",
    error: loadFailed(model, found),
    proves: ["A6.load.failure", "A6.load.again", ...(found.proves ?? [])],
  })),
  {
    name: "a file of another format, by its version",
    model: "no_onnx",
    operation: "load",
    error:
      /^load failed for model 'no_onnx': version 1 is at UNAVAILABLE state: Internal: .* is not an ONNX model: the file is truncated or has another format;$/,
    proves: ["A6.load.failure.version"],
  },
  {
    name: "a backend that there is not, by its version",
    model: "no_backend",
    operation: "load",
    error:
      "load failed for model 'no_backend': version 1 is at UNAVAILABLE state: Invalid argument: unable to find backend library for backend 'fil', try specifying runtime on the model configuration.;",
    proves: ["A6.load.failure.version"],
  },
  {
    name: "a configuration that is no JSON",
    model: "fixed",
    operation: "load",
    parameters: { config: "{" },
    error: /^failed to load 'fixed', failed to poll from model repository: Invalid config override: /,
    proves: ["A6.config.no-json"],
  },
  {
    name: "a configuration with a duplicate field",
    model: "fixed",
    operation: "load",
    parameters: { config: '{"max_batch_size":0,"max_batch_size":0}' },
    error: /^failed to load 'fixed', failed to poll from model repository: Invalid config override: .*"max_batch_size"/,
    proves: ["A6.config.duplicate-field"],
  },
  {
    name: "a configuration with a field that there is not",
    model: "fixed",
    operation: "load",
    parameters: { config: '{"foo":1}' },
    error: /^failed to load 'fixed', failed to poll from model repository: Invalid config override: .*"foo"/,
    proves: ["A6.config.unknown-field"],
  },
  {
    name: "a configuration of another model",
    model: "fixed",
    operation: "load",
    parameters: { config: '{"name":"other"}' },
    error:
      "failed to load 'fixed', failed to poll from model repository: unexpected directory name 'fixed' for model 'other', directory name must equal model name",
    proves: ["A6.config.other-name"],
  },
  {
    name: "a configuration that the file contradicts",
    model: "fixed",
    operation: "load",
    parameters: { config: '{"max_batch_size":2}' },
    error:
      "load failed for model 'fixed': version 1 is at UNAVAILABLE state: Invalid argument: autofill failed for model 'fixed': model does not support batching while non-zero max_batch_size is specified;",
    proves: ["A6.config.contradiction"],
  },
  {
    name: "a configuration that is no text",
    model: "fixed",
    operation: "load",
    parameters: { config: true },
    error: "invalid value type for load parameter 'config', expected string_param.",
    proves: ["A6.config.type"],
  },
  {
    name: "files without a configuration",
    model: "fixed",
    operation: "load",
    parameters: { "file:1/model.onnx": file },
    error:
      "failed to load 'fixed', failed to poll from model repository: override model directory requires the parameter 'config'",
    proves: ["A6.files.need-config"],
  },
  {
    name: "files of another directory",
    model: "fixed",
    operation: "load",
    parameters: { config: "{}", "file:../x/1/model.onnx": file },
    error:
      "failed to load 'fixed', failed to poll from model repository: invalid file '../x/1/model.onnx', which is not below the directory of model 'fixed'",
    proves: ["A6.files.outside"],
  },
  {
    name: "files without a version",
    model: "fixed",
    operation: "load",
    parameters: { config: '{"backend":"onnxruntime"}', "file:model.onnx": file },
    error:
      "load failed for model 'fixed': at least one version must be available under the version policy of model 'fixed'",
    proves: ["A6.version.none"],
  },
  {
    name: "a file that is no content",
    model: "fixed",
    operation: "load",
    parameters: { "file:1/model.onnx": false },
    error: "invalid value type for load parameter 'file:1/model.onnx', expected bytes_param.",
    proves: ["A6.files.type"],
  },
  {
    name: "a file of the request that is not a model",
    model: "fixed",
    operation: "load",
    parameters: { config: "{}", "file:1/model.onnx": Buffer.from("no model") },
    error:
      /^load failed for model 'fixed': version 1 is at UNAVAILABLE state: Internal: 1\/model\.onnx is not an ONNX model: /,
    proves: ["A6.load.failure.version"],
  },
  {
    name: "a script",
    model: "fixed",
    operation: "load",
    parameters: { config: '{"backend":"nereid"}', "file:1/model.js": Buffer.from("export default {}") },
    error:
      "failed to load 'fixed', failed to poll from model repository: a script cannot be loaded from the files of a request",
    proves: ["A12.script.files"],
  },
  {
    name: "a parameter that there is not",
    model: "fixed",
    operation: "load",
    parameters: { x: "y" },
    error: "unrecognized load parameter 'x'.",
    proves: ["A6.parameter.unknown"],
  },
  {
    name: "unload_dependents that is no truth",
    model: "fixed",
    operation: "unload",
    parameters: { unload_dependents: "yes" },
    error: "invalid value type for 'unload_dependents' parameter, expected bool_param.",
    proves: ["A6.unload.dependents-type"],
  },
]

const refusalHttp = ({ name, model, operation, parameters, error, internal, proves }: Refusal): HttpCase =>
  http(
    `${operation}: ${name}`,
    {
      path: `/v2/repository/models/${encodeURIComponent(model)}/${operation}`,
      body: parameters === undefined ? "" : JSON.stringify({ parameters: inJson(parameters) }),
    },
    { status: internal ? 500 : 400, error },
    on("C32", "C33", ...proves),
  )

const inJson = (parameters: Parameters) =>
  Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [
      name,
      value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value,
    ]),
  )

const refusalGrpc = ({ name, model, operation, parameters = {}, error, internal, proves }: Refusal): GrpcCase => {
  const request = {
    modelName: model,
    parameters: Object.fromEntries(
      Object.entries(parameters).map(([key, value]) => [key, { parameterChoice: choice(value) }]),
    ),
  }
  const expected = { code: internal ? GrpcCode.INTERNAL : GrpcCode.INVALID_ARGUMENT, message: error }
  return changing(operation, name, request, expected, ...proves)
}

const changing = (
  operation: Refusal["operation"],
  name: string,
  request: MessageInitShape<typeof method.repositoryModelLoad.input> &
    MessageInitShape<typeof method.repositoryModelUnload.input>,
  expected: GrpcExpected,
  ...proves: ReadonlyArray<Claim>
): GrpcCase =>
  operation === "load"
    ? rpc(name, method.repositoryModelLoad, request, expected, on("C32", "C33", ...proves))
    : rpc(name, method.repositoryModelUnload, request, expected, on("C32", ...proves))

const choice = (value: Parameters[string]) => {
  if (value instanceof Uint8Array) return { case: "bytesParam" as const, value: new Uint8Array(value) }
  if (typeof value === "boolean") return { case: "boolParam" as const, value }
  return { case: "stringParam" as const, value: String(value) }
}

const loading = (name: string, body: string, expected: HttpExpected, ...proves: ReadonlyArray<Claim>): HttpCase =>
  http(`load: ${name}`, { path: "/v2/repository/models/fixed/load", body }, expected, on("C32", "C33", ...proves))

const cannotChange: ReadonlyArray<HttpCase> = [
  loading("in no JSON", "{", { status: 400, error: /^failed to parse/ }, "A1.load.body"),
  loading(
    "invalid parameters",
    '{"parameters":[]}',
    { status: 400, error: /^Unable to parse 'parameters'/ },
    "A1.load.body",
  ),
  loading("a file that is no base64", '{"parameters":{"config":"{}","file:1/model.onnx":"*"}}', {
    status: 400,
    error: "invalid value type for load parameter 'file:1/model.onnx', expected bytes_param.",
  }),
  loading("once more, without a change", "", { status: 200, body: "" }),
  ...["load", "unload"].flatMap((operation) => [
    http(
      `${operation} from a repository by name`,
      { path: `/v2/repository/r/models/fixed/${operation}`, body: "" },
      { status: 501, error: "'repository_name' specification is not supported" },
      on("C32", "A1.repository-name"),
    ),
    http(
      `${operation} by GET`,
      { method: "GET", path: `/v2/repository/models/fixed/${operation}` },
      { status: 405, error: "Method Not Allowed" },
      on("C5", "A1.load.method"),
    ),
  ]),
  http(
    "unload: a model that is not there is done",
    { path: "/v2/repository/models/no/unload", body: "" },
    { status: 200, body: "" },
    on("C32", "A6.unload.absent"),
  ),
]

const cannotChangeGrpc: ReadonlyArray<GrpcCase> = [
  rpc(
    "once more, without a change",
    method.repositoryModelLoad,
    { modelName: "fixed" },
    { code: 0, replies: ["{}"] },
    on("C32"),
  ),
  rpc(
    "a model that is not there is done",
    method.repositoryModelUnload,
    { modelName: "no" },
    { code: 0, replies: ["{}"] },
    on("C32", "A6.unload.absent"),
  ),
  ...(["load", "unload"] as const).flatMap((operation) => [
    changing(
      operation,
      "no name",
      { modelName: "" },
      { code: GrpcCode.INVALID_ARGUMENT, message: "Model name cannot be empty. Please enter a valid name to deploy." },
      "A6.name.empty",
    ),
    changing(
      operation,
      "from a repository by name",
      { modelName: "fixed", repositoryName: "r" },
      { code: GrpcCode.UNIMPLEMENTED, message: "'repository_name' specification is not supported" },
      "A1.repository-name",
    ),
  ]),
]

export const storedLoadsHttp: ReadonlyArray<HttpCase> = [...refusals.map(refusalHttp), ...cannotChange]

export const storedLoadsGrpc: ReadonlyArray<GrpcCase> = [...refusals.map(refusalGrpc), ...cannotChangeGrpc]
