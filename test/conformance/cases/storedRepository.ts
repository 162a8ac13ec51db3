/**
 * A repository that callers may load from, as both protocols show it: the index with its states and reasons, what is refused
 * of loading and unloading, and the metadata and configurations of what is there. Nothing here changes what is loaded.
 */
import type { MessageInitShape } from "@bufbuild/protobuf"
import { GrpcCode } from "@nereid/core/Errors"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { type Claim, type GrpcCase, type GrpcExpected, type HttpCase, type HttpExpected, http, rpc } from "../Case.ts"
import { addSub } from "../../fixtures/onnx.ts"
import { broken, versionOf } from "../StoredRefusals.ts"

const { method } = GRPCInferenceService

const on = (...proves: ReadonlyArray<Claim>) => ({ proves, server: "stored" }) as const

const escaped = (text: string) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)

/** Somewhere in a document. */
const part = (text: string): RegExp => new RegExp(escaped(text))

/** A reason as it stands in the JSON of the index, which escapes its quotes. */
const reasonPart = (reason: string | RegExp): string =>
  reason instanceof RegExp ? reason.source : escaped(JSON.stringify(reason).slice(1, -1))

const index = (name: string, body: string, expected: RegExp, ...proves: ReadonlyArray<Claim>): HttpCase =>
  http(name, { path: "/v2/repository/index", body }, { status: 200, body: expected }, on("C32", ...proves))

const indexGrpc = (name: string, ready: boolean, expected: RegExp, ...proves: ReadonlyArray<Claim>): GrpcCase =>
  rpc(name, method.repositoryIndex, { ready }, { code: 0, replies: [expected] }, on("C32", ...proves))

const readyEntry = part('{"name":"fixed","version":"1","state":"READY","reason":""}')
const readyMessage = part('{"name":"fixed","version":"1","state":"READY"}')

/** Of a model that is not there, whose reason is a part of the one that the index has. */
const brokenEntry = (name: string, found: (typeof broken)[string]): RegExp => {
  const version = versionOf(found)
  const head = `{"name":"${name}",${version === undefined ? "" : `"version":"${version}",`}"state":"UNAVAILABLE","reason":"`
  return new RegExp(`${escaped(head)}[^}]*(${reasonPart(found.reason)})`)
}

const states: ReadonlyArray<HttpCase> = [
  index("a model that is loaded", "", readyEntry, "A1.index.all", "A1.index.ready-state", "A1.index.empty-body"),
  index(
    "every version of it",
    "{}",
    /"specific","version":"1","state":"READY","reason":""\},\{"name":"specific","version":"3"/,
    "A1.index.all",
  ),
  index("a model that has never been loaded is its name", "", part('{"name":"idle"}'), "A1.index.never-loaded"),
  index(
    "what is ready and nothing else",
    '{"ready":true}',
    /^(?!.*"idle")(?!.*UNAVAILABLE).*"name":"fixed"/,
    "A1.index.ready",
  ),
  index("with false, all", '{"ready":false}', part('{"name":"idle"}')),
  index(
    "an ensemble and its models",
    "",
    /"name":"bare","version":"1","state":"READY".*"name":"in_steps","version":"1","state":"READY"/,
    "A6.ensemble.index",
  ),
  ...Object.entries(broken).map(([name, found]) =>
    index(
      `${name} is not, and says why`,
      "",
      brokenEntry(name, found),
      "A1.index.unavailable",
      ...(found.proves ?? []),
    ),
  ),
  ...['"yes"', "1", "null", "[]"].map((ready) =>
    http(
      `ready is no ${ready}`,
      { path: "/v2/repository/index", body: `{"ready":${ready}}` },
      { status: 400, error: "Invalid value for 'ready': expected a boolean" },
      on("C32", "A1.index.ready-type"),
    ),
  ),
  http(
    "the index of a repository by name",
    { path: "/v2/repository/r/index", body: "" },
    { status: 501, error: "'repository_name' specification is not supported" },
    on("C32", "A1.repository-name"),
  ),
  http(
    "with a model that cannot be loaded it is not ready",
    { path: "/v2/health/ready" },
    { status: 400, body: "" },
    on("C1", "A6.readiness.strict"),
  ),
]

const statesGrpc: ReadonlyArray<GrpcCase> = [
  indexGrpc("a model that is loaded", false, readyMessage, "A1.index.all", "A1.index.ready-state"),
  indexGrpc("a model that has never been loaded is its name", false, part('{"name":"idle"}'), "A1.index.never-loaded"),
  indexGrpc("what is ready and nothing else", true, /^(?!.*"idle")(?!.*UNAVAILABLE).*"name":"fixed"/, "A1.index.ready"),
  indexGrpc(
    "an ensemble and its models",
    false,
    /"name":"bare","version":"1","state":"READY".*"name":"in_steps","version":"1","state":"READY"/,
    "A6.ensemble.index",
  ),
  ...Object.entries(broken).map(([name, found]) =>
    indexGrpc(
      `${name} is not, and says why`,
      false,
      brokenEntry(name, found),
      "A1.index.unavailable",
      ...(found.proves ?? []),
    ),
  ),
  rpc(
    "of a repository by name",
    method.repositoryIndex,
    { repositoryName: "r" },
    { code: GrpcCode.UNIMPLEMENTED, message: "'repository_name' specification is not supported" },
    on("C32", "A1.repository-name"),
  ),
  rpc(
    "with a model that cannot be loaded it is not",
    method.serverReady,
    {},
    { code: 0, replies: ["{}"] },
    on("C1", "A6.readiness.strict"),
  ),
]

type Parameters = { readonly [name: string]: string | boolean | number | Uint8Array }

interface Refusal {
  readonly name: string
  readonly model: string
  readonly what: "load" | "unload"
  readonly parameters?: Parameters
  readonly error: string | RegExp
  readonly internal?: boolean
  readonly proves: ReadonlyArray<Claim>
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
    proves: ["A6.load.unknown"],
  },
  ...(["..", "a/b", "a\\b", "../fixed"] as const).flatMap((model) =>
    (["load", "unload"] as const).map((what): Refusal => ({
      name: `the name ${model}`,
      model,
      what,
      error: traversal(model),
      proves: ["A6.name.traversal"],
    })),
  ),
  ...Object.entries(broken).map(([model, found]): Refusal => ({
    name: `again: ${model}`,
    model,
    what: "load",
    error: loadFailed(model, found),
    proves: ["A6.load.failure", "A6.load.again", ...(found.proves ?? [])],
  })),
  {
    name: "a file of another format, by its version",
    model: "no_onnx",
    what: "load",
    error:
      /^load failed for model 'no_onnx': version 1 is at UNAVAILABLE state: .* is not an ONNX model: its bytes are cut short, or of another format;$/,
    proves: ["A6.load.failure.version"],
  },
  {
    name: "a backend that there is not, by its version",
    model: "no_backend",
    what: "load",
    error:
      "load failed for model 'no_backend': version 1 is at UNAVAILABLE state: unable to find backend library for backend 'fil', try specifying runtime on the model configuration.;",
    proves: ["A6.load.failure.version"],
  },
  {
    name: "a configuration that is no JSON",
    model: "fixed",
    what: "load",
    parameters: { config: "{" },
    error: /^load failed for model 'fixed': Invalid config override: /,
    proves: ["A6.config.no-json"],
  },
  {
    name: "a configuration with a field that there is not",
    model: "fixed",
    what: "load",
    parameters: { config: '{"foo":1}' },
    error: /^load failed for model 'fixed': Invalid config override: .*"foo"/,
    proves: ["A6.config.unknown-field"],
  },
  {
    name: "a configuration of another model",
    model: "fixed",
    what: "load",
    parameters: { config: '{"name":"other"}' },
    error:
      "load failed for model 'fixed': unexpected directory name 'fixed' for model 'other', directory name must equal model name",
    proves: ["A6.config.other-name"],
  },
  {
    name: "a configuration that the file contradicts",
    model: "fixed",
    what: "load",
    parameters: { config: '{"max_batch_size":2}' },
    error:
      "load failed for model 'fixed': version 1 is at UNAVAILABLE state: autofill failed for model 'fixed': model does not support batching while non-zero max_batch_size is specified;",
    proves: ["A6.config.contradiction"],
  },
  {
    name: "a configuration that is no text",
    model: "fixed",
    what: "load",
    parameters: { config: true },
    error: "invalid value type for load parameter 'config', expected string_param.",
    proves: ["A6.config.type"],
  },
  {
    name: "files without a configuration",
    model: "fixed",
    what: "load",
    parameters: { "file:1/model.onnx": file },
    error: "load failed for model 'fixed': override model directory requires the parameter 'config'",
    proves: ["A6.files.need-config"],
  },
  {
    name: "files of another directory",
    model: "fixed",
    what: "load",
    parameters: { config: "{}", "file:../x/1/model.onnx": file },
    error:
      "load failed for model 'fixed': invalid file '../x/1/model.onnx', which is not below the directory of model 'fixed'",
    proves: ["A6.files.outside"],
  },
  {
    name: "files without a version",
    model: "fixed",
    what: "load",
    parameters: { config: '{"backend":"onnxruntime"}', "file:model.onnx": file },
    error:
      "load failed for model 'fixed': at least one version must be available under the version policy of model 'fixed'",
    proves: ["A6.version.none"],
  },
  {
    name: "a file that is no content",
    model: "fixed",
    what: "load",
    parameters: { "file:1/model.onnx": false },
    error: "invalid value type for load parameter 'file:1/model.onnx', expected bytes_param.",
    proves: ["A6.files.type"],
  },
  {
    name: "a script",
    model: "fixed",
    what: "load",
    parameters: { config: '{"backend":"nereid"}', "file:1/model.js": Buffer.from("export default {}") },
    error:
      "load failed for model 'fixed': a script is loaded from a repository, never from files that come with a request",
    proves: ["A12.script.files"],
  },
  {
    name: "a parameter that there is not",
    model: "fixed",
    what: "load",
    parameters: { x: "y" },
    error: "unrecognized load parameter 'x'.",
    proves: ["A6.parameter.unknown"],
  },
  {
    name: "unload_dependents that is no truth",
    model: "fixed",
    what: "unload",
    parameters: { unload_dependents: "yes" },
    error: "invalid value type for 'unload_dependents' parameter, expected bool_param.",
    proves: ["A6.unload.dependents-type"],
  },
]

const refusalHttp = ({ name, model, what, parameters, error, internal, proves }: Refusal): HttpCase =>
  http(
    `${what}: ${name}`,
    {
      path: `/v2/repository/models/${encodeURIComponent(model)}/${what}`,
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

const refusalGrpc = ({ name, model, what, parameters = {}, error, internal, proves }: Refusal): GrpcCase => {
  const request = {
    modelName: model,
    parameters: Object.fromEntries(
      Object.entries(parameters).map(([key, value]) => [key, { parameterChoice: choice(value) }]),
    ),
  }
  const expected = { code: internal ? GrpcCode.INTERNAL : GrpcCode.INVALID_ARGUMENT, message: error }
  return changing(what, name, request, expected, ...proves)
}

const changing = (
  what: Refusal["what"],
  name: string,
  request: MessageInitShape<typeof method.repositoryModelLoad.input> &
    MessageInitShape<typeof method.repositoryModelUnload.input>,
  expected: GrpcExpected,
  ...proves: ReadonlyArray<Claim>
): GrpcCase =>
  what === "load"
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
  loading("in no JSON", "{", { status: 500, error: /^failed to parse/ }, "A1.load.body"),
  loading(
    "parameters that are none",
    '{"parameters":[]}',
    { status: 500, error: /^Unable to parse 'parameters'/ },
    "A1.load.body",
  ),
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
      on("C32", "A1.repository-name"),
    ),
    http(
      `${what} by GET`,
      { method: "GET", path: `/v2/repository/models/fixed/${what}` },
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
  ...(["load", "unload"] as const).flatMap((what) => [
    changing(
      what,
      "no name",
      { modelName: "" },
      { code: GrpcCode.INVALID_ARGUMENT, message: "Model name cannot be empty. Please enter a valid name to deploy." },
      "A6.name.empty",
    ),
    changing(
      what,
      "from a repository by name",
      { modelName: "fixed", repositoryName: "r" },
      { code: GrpcCode.UNIMPLEMENTED, message: "'repository_name' specification is not supported" },
      "A1.repository-name",
    ),
  ]),
]

/** What both protocols show of a model, by its metadata or its configuration. */
interface Shown {
  readonly name: string
  readonly of: "metadata" | "config"
  readonly model: string
  readonly version?: string
  readonly shows: Readonly<Record<string, unknown>>
  readonly proves: ReadonlyArray<Claim>
}

const io = (name: string, datatype: string, ...shape: ReadonlyArray<number>) => ({ name, datatype, shape })

const showing = (
  of: Shown["of"],
  name: string,
  model: string,
  shows: Shown["shows"],
  ...proves: ReadonlyArray<Claim>
): Shown => ({ name, of, model, shows, proves })

const shown: ReadonlyArray<Shown> = [
  showing(
    "metadata",
    "completed from the file, with a batch dimension",
    "bare",
    {
      name: "bare",
      versions: ["1"],
      platform: "onnxruntime_onnx",
      inputs: [io("X", "FP32", -1, 1)],
      outputs: [io("Y", "FP32", -1, 1)],
    },
    "C35",
    "A1.metadata.batch",
    "A1.metadata.platform",
    "A11.completion.absent",
    "A11.completion.tensors",
  ),
  showing(
    "metadata",
    "every version that is there",
    "specific",
    { versions: ["1", "3"] },
    "C34",
    "A1.metadata.versions",
    "A6.version.specific",
  ),
  {
    ...showing("metadata", "of a version", "specific", { versions: ["1"] }, "C34", "A1.metadata.version"),
    version: "1",
  },
  ...(
    [
      ["1", -1, 3, "INT64"],
      ["2", 2, undefined, "FP32"],
    ] as const
  ).map(([version, first, second, datatype]) => ({
    ...showing(
      "metadata",
      `of version ${version}, by its own file`,
      "unlike",
      { inputs: [io("X", datatype, ...(second === undefined ? [first] : [first, second]))] },
      "C35",
      "A11.completion.version",
    ),
    version,
  })),
  showing("metadata", "a scalar has one element", "scalar", { inputs: [io("X", "INT32", 1)] }, "C35"),
  showing("metadata", "without a batch", "fixed", { inputs: [io("X", "FP32", 2, 3)] }, "C3", "A1.metadata.no-batch"),
  showing(
    "metadata",
    "dims before a reshape",
    "reshaped",
    { inputs: [io("X", "FP32", -1, 4, -1)], outputs: [io("Y", "FP32", -1, 1, 4, -1)] },
    "C3",
    "A1.metadata.reshape",
  ),
  showing(
    "metadata",
    "strings are BYTES",
    "strings",
    { inputs: [io("X", "BYTES", -1, -1)] },
    "C3",
    "A1.metadata.strings",
  ),
  showing("metadata", "a script", "script", { platform: "nereid" }, "C3", "A1.metadata.platform"),
  showing("metadata", "an ensemble", "in_steps", { platform: "ensemble" }, "C3", "A1.metadata.platform"),
  showing(
    "config",
    "completed from the file",
    "bare",
    {
      name: "bare",
      platform: "onnxruntime_onnx",
      backend: "onnxruntime",
      version_policy: { latest: { num_versions: 1 } },
      max_batch_size: 4,
      input: [{ name: "X", data_type: "TYPE_FP32", dims: [1] }],
      output: [{ name: "Y", data_type: "TYPE_FP32", dims: [1] }],
      instance_group: [{ name: "bare_0", count: 2, gpus: [], kind: "KIND_CPU" }],
      default_model_filename: "model.onnx",
      dynamic_batching: { preferred_batch_size: [4], max_queue_delay_microseconds: 0 },
    },
    "C35",
    "A1.config.onnx-group",
    "A11.completion.absent",
    "A11.completion.backend",
    "A11.completion.tensors",
    "A11.completion.batch",
  ),
  showing(
    "config",
    "a listed group",
    "fixed",
    { max_batch_size: 0, instance_group: [{ name: "fixed_0", count: 1, gpus: [], kind: "KIND_CPU" }] },
    "C4",
    "A11.completion.no-batch",
  ),
  showing(
    "config",
    "a scalar is reshaped to no dims",
    "scalar",
    { input: [{ dims: [1], reshape: { shape: [] } }] },
    "C35",
    "A11.completion.scalar",
  ),
  showing("config", "labels", "labelled", { output: [{ label_filename: "labels.txt" }] }, "C4"),
  showing(
    "config",
    "a ragged batch",
    "ragged",
    { input: [{ allow_ragged_batch: true }], batch_input: [{ kind: "BATCH_ACCUMULATED_ELEMENT_COUNT" }] },
    "C4",
  ),
  {
    ...showing(
      "config",
      "of a version",
      "specific",
      { version_policy: { specific: { versions: [3, 1, 7] } } },
      "C34",
      "A1.config.version",
    ),
    version: "3",
  },
]

const shownHttp = ({ name, of, model, version, shows, proves }: Shown): HttpCase => {
  const path = version === undefined ? model : `${model}/versions/${version}`
  const request = { path: `/v2/models/${path}${of === "config" ? "/config" : ""}` }
  return http(`${of}: ${name}`, request, { status: 200, shows }, on(...proves))
}

const shownGrpc = ({ name, of, model, version = "", shows, proves }: Shown): GrpcCase =>
  of === "config"
    ? rpc(name, method.modelConfig, { name: model, version }, { code: 0, shows: { config: shows } }, on(...proves))
    : rpc(name, method.modelMetadata, { name: model, version }, { code: 0, shows }, on(...proves))

/** In the digits of the file, which no number of JavaScript has. */
const digits = "9007199254740993"

const exact: readonly [HttpCase, GrpcCase] = [
  http(
    "configuration: all digits of its integers",
    { path: "/v2/models/integers/config" },
    { status: 200, body: part(`"default_timeout_microseconds":${digits},`) },
    on("C4", "A1.config.integers"),
  ),
  rpc(
    "all digits of its integers",
    method.modelConfig,
    { name: "integers" },
    { code: 0, replies: [part(`"defaultTimeoutMicroseconds":"${digits}"`)] },
    on("C4", "A1.config.integers"),
  ),
]

const readiness: ReadonlyArray<HttpCase> = [
  http(
    "a model that is there is ready",
    { path: "/v2/models/fixed/ready" },
    { status: 200, body: "" },
    on("C1", "A1.ready.model"),
  ),
  http(
    "a version that is there is ready",
    { path: "/v2/models/specific/versions/3/ready" },
    { status: 200, body: "" },
    on("C34", "A1.ready.version"),
  ),
  ...["x", "-1", "1.0"].map((version) =>
    http(
      `a version that is no number: ${version}`,
      { path: `/v2/models/specific/versions/${version}/ready` },
      { status: 404, error: "Not Found" },
      on("C5", "A1.ready.version-syntax"),
    ),
  ),
  ...(
    [
      ["specific/versions/2/ready", "'specific' version 2 is not found", "A1.ready.version"],
      ["idle", "'idle' is not found", "A1.ready.model"],
      ["idle/config", "'idle' is not found", "A1.config.absent"],
      ["idle/ready", "'idle' is not found", "A1.ready.model"],
      ["bad_batch", "'bad_batch' has no available versions", "A1.config.absent"],
      ["bad_batch/versions/2/ready", "'bad_batch' version 2 is not found", "A1.ready.version"],
    ] as const
  ).map(([path, error, claim]) =>
    http(
      `what is not loaded: ${path}`,
      { path: `/v2/models/${path}` },
      { status: 404, error: `Request for unknown model: ${error}` },
      on("C16", claim),
    ),
  ),
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
      on("C1", "C16", "A1.ready.model"),
    ),
  ),
]

const readinessGrpc: ReadonlyArray<GrpcCase> = [
  rpc(
    "a model that is there",
    method.modelReady,
    { name: "fixed" },
    { code: 0, replies: ['{"ready":true}'] },
    on("C1", "A1.ready.model"),
  ),
  rpc(
    "a version that is there",
    method.modelReady,
    { name: "specific", version: "3" },
    { code: 0, replies: ['{"ready":true}'] },
    on("C34", "A1.ready.version"),
  ),
  rpc(
    "a version that is not there",
    method.modelReady,
    { name: "specific", version: "2" },
    { code: GrpcCode.NOT_FOUND, message: "Request for unknown model: 'specific' version 2 is not found" },
    on("C34", "A1.ready.version"),
  ),
  rpc(
    "a model that is not loaded",
    method.modelReady,
    { name: "idle" },
    { code: GrpcCode.NOT_FOUND, message: "Request for unknown model: 'idle' is not found" },
    on("C16", "A1.ready.model"),
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
    on("C16", "A1.config.absent"),
  ),
]

export const storedHttp: ReadonlyArray<HttpCase> = [
  ...states,
  ...refusals.map(refusalHttp),
  ...cannotChange,
  ...shown.map(shownHttp),
  exact[0],
  ...readiness,
]

export const storedGrpc: ReadonlyArray<GrpcCase> = [
  ...statesGrpc,
  ...refusals.map(refusalGrpc),
  ...cannotChangeGrpc,
  ...shown.map(shownGrpc),
  exact[1],
  ...readinessGrpc,
]
