/**
 * A repository that callers may load from, as both protocols show it: the index with its states and reasons, what is refused
 * of loading and unloading, and the metadata and configurations of what is there. Nothing here changes what is loaded.
 */
import type { MessageInitShape } from "@bufbuild/protobuf"
import { GrpcCode } from "@nereid/core/Errors"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import type { Line } from "../Acceptance.ts"
import { type GrpcCase, type GrpcExpected, type HttpCase, type HttpExpected, http, rpc } from "../Case.ts"
import { addSub } from "../../fixtures/onnx.ts"
import { broken, versionOf } from "../StoredModels.ts"

const { method } = GRPCInferenceService

const on = (...proves: ReadonlyArray<Line>) => ({ proves, server: "stored" }) as const

const escaped = (text: string) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)

/** Somewhere in a document. */
const part = (text: string): RegExp => new RegExp(escaped(text))

/** A reason as it stands in the JSON of the index, which escapes its quotes. */
const reasonPart = (reason: string | RegExp): string =>
  reason instanceof RegExp ? reason.source : escaped(JSON.stringify(reason).slice(1, -1))

const index = (name: string, body: string, expected: RegExp): HttpCase =>
  http(name, { path: "/v2/repository/index", body }, { status: 200, body: expected }, on("C32"))

const indexGrpc = (name: string, ready: boolean, expected: RegExp): GrpcCase =>
  rpc(name, method.repositoryIndex, { ready }, { code: 0, replies: [expected] }, on("C32"))

const readyEntry = part('{"name":"fixed","version":"1","state":"READY","reason":""}')
const readyMessage = part('{"name":"fixed","version":"1","state":"READY"}')

/** Of a model that is not there, whose reason is a part of the one that the index has. */
const brokenEntry = (name: string, found: (typeof broken)[string]): RegExp => {
  const version = versionOf(found)
  const head = `{"name":"${name}",${version === undefined ? "" : `"version":"${version}",`}"state":"UNAVAILABLE","reason":"`
  return new RegExp(`${escaped(head)}[^}]*(${reasonPart(found.reason)})`)
}

const states: ReadonlyArray<HttpCase> = [
  index("a model that is loaded", "", readyEntry),
  index(
    "every version of it",
    "{}",
    /"specific","version":"1","state":"READY","reason":""\},\{"name":"specific","version":"3"/,
  ),
  index("a model that has never been loaded is its name", "", part('{"name":"idle"}')),
  index("what is ready and nothing else", '{"ready":true}', /^(?!.*"idle")(?!.*UNAVAILABLE).*"name":"fixed"/),
  index("with false, all", '{"ready":false}', part('{"name":"idle"}')),
  ...Object.entries(broken).map(([name, found]) => index(`${name} is not, and says why`, "", brokenEntry(name, found))),
  http(
    "with a model that cannot be loaded it is not ready",
    { path: "/v2/health/ready" },
    { status: 400, body: "" },
    on("C1"),
  ),
]

const statesGrpc: ReadonlyArray<GrpcCase> = [
  indexGrpc("a model that is loaded", false, readyMessage),
  indexGrpc("a model that has never been loaded is its name", false, part('{"name":"idle"}')),
  indexGrpc("what is ready and nothing else", true, /^(?!.*"idle")(?!.*UNAVAILABLE).*"name":"fixed"/),
  ...Object.entries(broken).map(([name, found]) =>
    indexGrpc(`${name} is not, and says why`, false, brokenEntry(name, found)),
  ),
  rpc("with a model that cannot be loaded it is not", method.serverReady, {}, { code: 0, replies: ["{}"] }, on("C1")),
]

type Parameters = { readonly [name: string]: string | boolean | number | Uint8Array }

interface Refusal {
  readonly name: string
  readonly model: string
  readonly what: "load" | "unload"
  readonly parameters?: Parameters
  readonly error: string | RegExp
  readonly internal?: boolean
}

const traversal = (name: string) =>
  `invalid model name '${name}', model name must not contain path traversal characters`

const loadFailed = (model: string, { reason }: { readonly reason: string | RegExp }): RegExp =>
  new RegExp(`^load failed for model '${model}': .*(${reason instanceof RegExp ? reason.source : escaped(reason)})`)

const file = addSub("FP32", ["n", 2])

/** What both protocols refuse, in the same words. */
const refusals: ReadonlyArray<Refusal> = [
  {
    name: "a model that is not there",
    model: "no",
    what: "load",
    error: "failed to load 'no', failed to poll from model repository",
    internal: true,
  },
  ...(["..", "a/b", "a\\b", "../fixed"] as const).flatMap((model) =>
    (["load", "unload"] as const).map((what): Refusal => ({
      name: `the name ${model}`,
      model,
      what,
      error: traversal(model),
    })),
  ),
  ...Object.entries(broken).map(([model, found]): Refusal => ({
    name: `again: ${model}`,
    model,
    what: "load",
    error: loadFailed(model, found),
  })),
  {
    name: "a file of another format, by its version",
    model: "no_onnx",
    what: "load",
    error:
      /^load failed for model 'no_onnx': version 1 is at UNAVAILABLE state: .* is not an ONNX model: its bytes are cut short, or of another format;$/,
  },
  {
    name: "a backend that there is not, by its version",
    model: "no_backend",
    what: "load",
    error:
      "load failed for model 'no_backend': version 1 is at UNAVAILABLE state: unable to find backend library for backend 'fil', try specifying runtime on the model configuration.;",
  },
  {
    name: "a configuration that is no JSON",
    model: "fixed",
    what: "load",
    parameters: { config: "{" },
    error: /^load failed for model 'fixed': Invalid config override: /,
  },
  {
    name: "a configuration with a field that there is not",
    model: "fixed",
    what: "load",
    parameters: { config: '{"foo":1}' },
    error: /^load failed for model 'fixed': Invalid config override: .*"foo"/,
  },
  {
    name: "a configuration of another model",
    model: "fixed",
    what: "load",
    parameters: { config: '{"name":"other"}' },
    error:
      "load failed for model 'fixed': unexpected directory name 'fixed' for model 'other', directory name must equal model name",
  },
  {
    name: "a configuration that the file contradicts",
    model: "fixed",
    what: "load",
    parameters: { config: '{"max_batch_size":2}' },
    error:
      "load failed for model 'fixed': version 1 is at UNAVAILABLE state: autofill failed for model 'fixed': model does not support batching while non-zero max_batch_size is specified;",
  },
  {
    name: "a configuration that is no text",
    model: "fixed",
    what: "load",
    parameters: { config: true },
    error: "invalid value type for load parameter 'config', expected string_param.",
  },
  {
    name: "files without a configuration",
    model: "fixed",
    what: "load",
    parameters: { "file:1/model.onnx": file },
    error: "load failed for model 'fixed': override model directory requires the parameter 'config'",
  },
  {
    name: "files of another directory",
    model: "fixed",
    what: "load",
    parameters: { config: "{}", "file:../x/1/model.onnx": file },
    error:
      "load failed for model 'fixed': invalid file '../x/1/model.onnx', which is not below the directory of model 'fixed'",
  },
  {
    name: "files without a version",
    model: "fixed",
    what: "load",
    parameters: { config: '{"backend":"onnxruntime"}', "file:model.onnx": file },
    error:
      "load failed for model 'fixed': at least one version must be available under the version policy of model 'fixed'",
  },
  {
    name: "a file that is no content",
    model: "fixed",
    what: "load",
    parameters: { "file:1/model.onnx": false },
    error: "invalid value type for load parameter 'file:1/model.onnx', expected bytes_param.",
  },
  {
    name: "a parameter that there is not",
    model: "fixed",
    what: "load",
    parameters: { x: "y" },
    error: "unrecognized load parameter 'x'.",
  },
  {
    name: "unload_dependents that is no truth",
    model: "fixed",
    what: "unload",
    parameters: { unload_dependents: "yes" },
    error: "invalid value type for 'unload_dependents' parameter, expected bool_param.",
  },
]

const refusalHttp = ({ name, model, what, parameters, error, internal }: Refusal): HttpCase =>
  http(
    `${what}: ${name}`,
    {
      path: `/v2/repository/models/${encodeURIComponent(model)}/${what}`,
      body: parameters === undefined ? "" : JSON.stringify({ parameters: inJson(parameters) }),
    },
    { status: internal ? 500 : 400, error },
    on("C32", "C33"),
  )

const inJson = (parameters: Parameters) =>
  Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [
      name,
      value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value,
    ]),
  )

const refusalGrpc = ({ name, model, what, parameters = {}, error, internal }: Refusal): GrpcCase => {
  const request = {
    modelName: model,
    parameters: Object.fromEntries(
      Object.entries(parameters).map(([key, value]) => [key, { parameterChoice: choice(value) }]),
    ),
  }
  const expected = { code: internal ? GrpcCode.INTERNAL : GrpcCode.INVALID_ARGUMENT, message: error }
  return changing(what, name, request, expected)
}

const changing = (
  what: Refusal["what"],
  name: string,
  request: MessageInitShape<typeof method.repositoryModelLoad.input> &
    MessageInitShape<typeof method.repositoryModelUnload.input>,
  expected: GrpcExpected,
): GrpcCase =>
  what === "load"
    ? rpc(name, method.repositoryModelLoad, request, expected, on("C32", "C33"))
    : rpc(name, method.repositoryModelUnload, request, expected, on("C32"))

const choice = (value: Parameters[string]) => {
  if (value instanceof Uint8Array) return { case: "bytesParam" as const, value: new Uint8Array(value) }
  if (typeof value === "boolean") return { case: "boolParam" as const, value }
  return { case: "stringParam" as const, value: String(value) }
}

const loading = (name: string, body: string, expected: HttpExpected): HttpCase =>
  http(`load: ${name}`, { path: "/v2/repository/models/fixed/load", body }, expected, on("C32", "C33"))

const cannotChange: ReadonlyArray<HttpCase> = [
  loading("in no JSON", "{", { status: 500, error: /^failed to parse/ }),
  loading("parameters that are none", '{"parameters":[]}', { status: 500, error: /^Unable to parse 'parameters'/ }),
  loading("a file that is no base64", '{"parameters":{"config":"{}","file:1/model.onnx":"*"}}', {
    status: 400,
    error: "invalid value type for load parameter 'file:1/model.onnx', expected bytes_param.",
  }),
  loading("once more, without a change", "", { status: 200, body: "" }),
  ...["load", "unload"].flatMap((what) => [
    http(
      `${what} from a repository by name`,
      { path: `/v2/repository/r/models/fixed/${what}`, body: "" },
      { status: 501, error: "'repository_name' specification is not supported" },
      on("C32"),
    ),
    http(
      `${what} by GET`,
      { method: "GET", path: `/v2/repository/models/fixed/${what}` },
      { status: 405, error: "Method Not Allowed" },
      on("C5"),
    ),
  ]),
  http(
    "unload: a model that is not there is done",
    { path: "/v2/repository/models/no/unload", body: "" },
    { status: 200, body: "" },
    on("C32"),
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
    on("C32"),
  ),
  ...(["load", "unload"] as const).flatMap((what) => [
    changing(
      what,
      "no name",
      { modelName: "" },
      { code: GrpcCode.INVALID_ARGUMENT, message: "Model name cannot be empty. Please enter a valid name to deploy." },
    ),
    changing(
      what,
      "from a repository by name",
      { modelName: "fixed", repositoryName: "r" },
      { code: GrpcCode.UNIMPLEMENTED, message: "'repository_name' specification is not supported" },
    ),
  ]),
]

const metadata = (name: string, path: string, body: string | RegExp, line: Line): HttpCase =>
  http(name, { path }, { status: 200, body }, on(line))

const shown: ReadonlyArray<HttpCase> = [
  metadata(
    "metadata: completed from the file, with a batch dimension",
    "/v2/models/bare",
    '{"name":"bare","versions":["1"],"platform":"onnxruntime_onnx","inputs":[{"name":"X","datatype":"FP32","shape":[-1,1]}],"outputs":[{"name":"Y","datatype":"FP32","shape":[-1,1]}]}',
    "C35",
  ),
  metadata("metadata: every version that is there", "/v2/models/specific", /"versions":\["1","3"\]/, "C34"),
  metadata(
    "metadata: a scalar has one element",
    "/v2/models/scalar",
    /"inputs":\[\{"name":"X","datatype":"INT32","shape":\[1\]\}\]/,
    "C35",
  ),
  metadata(
    "metadata: dims before a reshape",
    "/v2/models/reshaped",
    /"shape":\[-1,4,-1\]\}\].*"shape":\[-1,1,4,-1\]/,
    "C3",
  ),
  metadata("metadata: strings are BYTES", "/v2/models/strings", /"datatype":"BYTES","shape":\[-1,-1\]/, "C3"),
  metadata("metadata: a script", "/v2/models/script", /"platform":"nereid"/, "C3"),
  metadata(
    "configuration: completed from the file",
    "/v2/models/bare/config",
    /^\{"name":"bare","platform":"onnxruntime_onnx","version_policy":\{"latest":\{"num_versions":1\}\},"max_batch_size":4,"input":\[\{"name":"X","data_type":"TYPE_FP32",.*"dims":\[1\],.*"instance_group":\[\{"name":"bare_0","count":2,"gpus":\[\],"kind":"KIND_CPU",.*"default_model_filename":"model\.onnx",.*"dynamic_batching":\{"preferred_batch_size":\[4\],"max_queue_delay_microseconds":0,.*"backend":"onnxruntime"/,
    "C35",
  ),
  metadata(
    "configuration: a listed group",
    "/v2/models/fixed/config",
    /"max_batch_size":0,.*"instance_group":\[\{"name":"fixed_0","count":1,"gpus":\[\],"kind":"KIND_CPU"/,
    "C4",
  ),
  metadata(
    "configuration: a scalar is reshaped to no dims",
    "/v2/models/scalar/config",
    /"dims":\[1\],"reshape":\{"shape":\[\]\}/,
    "C35",
  ),
  metadata("configuration: labels", "/v2/models/labelled/config", /"label_filename":"labels\.txt"/, "C4"),
  metadata(
    "configuration: a ragged batch",
    "/v2/models/ragged/config",
    /"allow_ragged_batch":true.*"batch_input":\[\{"kind":"BATCH_ACCUMULATED_ELEMENT_COUNT"/,
    "C4",
  ),
  metadata(
    "configuration: of a version",
    "/v2/models/specific/versions/3/config",
    /"version_policy":\{"specific":\{"versions":\[3,1,7\]\}\}/,
    "C34",
  ),
  metadata("a version that is there is ready", "/v2/models/specific/versions/3/ready", "", "C34"),
  ...[
    ["/v2/models/specific/versions/2/ready", "Request for unknown model: 'specific' version 2 is not found"],
    ["/v2/models/idle", "Request for unknown model: 'idle' is not found"],
    ["/v2/models/idle/config", "Request for unknown model: 'idle' is not found"],
    ["/v2/models/idle/ready", "Request for unknown model: 'idle' is not found"],
    ["/v2/models/bad_batch", "Request for unknown model: 'bad_batch' has no available versions"],
    ["/v2/models/bad_batch/versions/2/ready", "Request for unknown model: 'bad_batch' version 2 is not found"],
  ].map(([path = "", error = ""]) => http(`what is not loaded: ${path}`, { path }, { status: 404, error }, on("C16"))),
  http(
    "a version that could not be loaded is not at ready state",
    { path: "/v2/models/bad_batch/versions/01/config" },
    { status: 503, error: "Request for unknown model: 'bad_batch' version 1 is not at ready state" },
    on("C16"),
  ),
  ...["", "/versions/1"].map((version) =>
    http(
      `what could not be loaded is not ready: bad_batch${version}`,
      { path: `/v2/models/bad_batch${version}/ready` },
      { status: 400, error: "Model version not ready" },
      on("C1", "C16"),
    ),
  ),
]

const shownGrpc: ReadonlyArray<GrpcCase> = [
  rpc(
    "completed from the file, with a batch dimension",
    method.modelMetadata,
    { name: "bare" },
    {
      code: 0,
      replies: [
        '{"name":"bare","versions":["1"],"platform":"onnxruntime_onnx","inputs":[{"name":"X","datatype":"FP32","shape":["-1","1"]}],"outputs":[{"name":"Y","datatype":"FP32","shape":["-1","1"]}]}',
      ],
    },
    on("C35"),
  ),
  rpc(
    "every version that is there",
    method.modelMetadata,
    { name: "specific" },
    { code: 0, replies: [/"versions":\["1","3"\]/] },
    on("C34"),
  ),
  rpc(
    "completed from the file",
    method.modelConfig,
    { name: "bare" },
    {
      code: 0,
      replies: [
        /"maxBatchSize":4,"input":\[\{"name":"X","dataType":"TYPE_FP32","dims":\["1"\]\}\].*"dynamicBatching":\{"preferredBatchSize":\[4\]/,
      ],
    },
    on("C35"),
  ),
  rpc(
    "a version that is there",
    method.modelReady,
    { name: "specific", version: "3" },
    { code: 0, replies: ['{"ready":true}'] },
    on("C34"),
  ),
  rpc(
    "a version that is not there",
    method.modelReady,
    { name: "specific", version: "2" },
    { code: GrpcCode.NOT_FOUND, message: "Request for unknown model: 'specific' version 2 is not found" },
    on("C34"),
  ),
  ...["", "1"].map((version) =>
    rpc(
      `what could not be loaded is not: bad_batch '${version}'`,
      method.modelReady,
      { name: "bad_batch", version },
      { code: 0, replies: ["{}"] },
      on("C1", "C16"),
    ),
  ),
  rpc(
    "a version that could not be loaded",
    method.modelMetadata,
    { name: "bad_batch", version: "1" },
    {
      code: GrpcCode.UNAVAILABLE,
      message: "Request for unknown model: 'bad_batch' version 1 is not at ready state",
      tag: "ModelNotReady",
    },
    on("C16"),
  ),
  rpc(
    "a model that could not be loaded",
    method.modelMetadata,
    { name: "bad_batch" },
    { code: GrpcCode.NOT_FOUND, message: "Request for unknown model: 'bad_batch' has no available versions" },
    on("C16"),
  ),
  rpc(
    "what is not loaded",
    method.modelConfig,
    { name: "idle" },
    { code: GrpcCode.NOT_FOUND, message: "Request for unknown model: 'idle' is not found" },
    on("C16"),
  ),
]

export const storedHttp: ReadonlyArray<HttpCase> = [...states, ...refusals.map(refusalHttp), ...cannotChange, ...shown]

export const storedGrpc: ReadonlyArray<GrpcCase> = [
  ...statesGrpc,
  ...refusals.map(refusalGrpc),
  ...cannotChangeGrpc,
  ...shownGrpc,
]
