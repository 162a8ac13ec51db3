/**
 * Extensions that are off, empty or refused on a plain server: shared memory, repository, logging. Over both protocols.
 */
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { type GrpcCase, type GrpcExpected, type HttpCase, type HttpExpected, http, rpc } from "../Case.ts"

const { method } = GRPCInferenceService

const shmOff = "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."
const off: HttpExpected = { status: 501, error: shmOff, tag: "Unsupported" }
const offGrpc: GrpcExpected = { code: GrpcCode.UNIMPLEMENTED, message: shmOff, tag: "Unsupported" }

const region = '{"key":"/k","offset":0,"byte_size":64}'
const cuda = "failed to register CUDA shared memory region: 'x', GPUs not supported"
const notSystem = "Unable to find system shared memory region: 'x'"
const notCuda = "Unable to find cuda shared memory region: 'x'"

const proves = { proves: ["C39"] } as const

const inRegion =
  '{"inputs":[{"name":"X","datatype":"INT32","shape":[1],"parameters":{"shared_memory_region":"x","shared_memory_byte_size":4}}]}'

const memoryHttp: ReadonlyArray<HttpCase> = [
  http("no regions", { path: "/v2/systemsharedmemory/status" }, { status: 200, body: "[]" }, proves),
  http(
    "a region that is not there",
    { path: "/v2/systemsharedmemory/region/x/status" },
    { status: 404, error: notSystem },
    proves,
  ),
  http("registering while it is off", { path: "/v2/systemsharedmemory/region/x/register", body: region }, off, proves),
  http("unregistering while it is off", { path: "/v2/systemsharedmemory/region/x/unregister", body: "" }, off, proves),
  http("unregistering all while it is off", { path: "/v2/systemsharedmemory/unregister", body: "" }, off, proves),
  http(
    "an input in a region while it is off",
    { path: "/v2/models/single_int32/infer", body: inRegion },
    { status: 501, error: new RegExp(shmOff.replaceAll(".", String.raw`\.`)) },
    proves,
  ),
  http("no CUDA regions", { path: "/v2/cudasharedmemory/status" }, { status: 200, body: "[]" }, proves),
  http(
    "a CUDA region that is not there",
    { path: "/v2/cudasharedmemory/region/x/status" },
    { status: 404, error: notCuda },
    proves,
  ),
  http(
    "registering CUDA memory",
    { path: "/v2/cudasharedmemory/region/x/register", body: "{}" },
    { status: 400, error: cuda },
    proves,
  ),
  http("unregistering CUDA memory", { path: "/v2/cudasharedmemory/unregister", body: "" }, { status: 200 }, proves),
]

const memoryAllowed: ReadonlyArray<HttpCase> = [
  ...(
    [
      ["no key", '{"offset":0,"byte_size":64}', 400],
      ["no JSON", "{", 400],
      ["a key that is no string", '{"key":1,"byte_size":64}', 400],
      ["a region that does not exist", '{"key":"/nereid-conformance-none","offset":0,"byte_size":64}', 400],
      ["a reserved key", '{"key":"/triton_python_backend_shm_region_1","offset":0,"byte_size":64}', 400],
      ["a path", '{"key":"/../etc/passwd","offset":0,"byte_size":64}', 400],
    ] as const
  ).map(([name, body, status]) =>
    http(
      `registering shared memory: ${name}`,
      { path: "/v2/systemsharedmemory/region/x/register", body },
      { status, error: /./ },
      { ...proves, server: "guarded" },
    ),
  ),
  http(
    "an input in a region that is not there",
    { path: "/v2/models/single_int32/infer", body: inRegion },
    { status: 404, error: /Unable to find shared memory region: 'x'$/ },
    { ...proves, server: "guarded" },
  ),
]

const emptyKey = (key: string) => `failed to register shared memory region 'x': invalid shm key '${key}'`

const emptyKeys = ["", "/", "//"] as const

const emptyKeysHttp: ReadonlyArray<HttpCase> = emptyKeys.map((key) =>
  http(
    `registering shared memory: the key ${JSON.stringify(key)}`,
    { path: "/v2/systemsharedmemory/region/x/register", body: JSON.stringify({ key, byte_size: 4 }) },
    { status: 400, error: emptyKey(key), tag: "InvalidRequest" },
    { ...proves, server: "guarded" },
  ),
)

const emptyKeysGrpc: ReadonlyArray<GrpcCase> = emptyKeys.map((key) =>
  rpc(
    `the key ${JSON.stringify(key)}`,
    method.systemSharedMemoryRegister,
    { name: "x", key, byteSize: 4n },
    { code: GrpcCode.INVALID_ARGUMENT, message: emptyKey(key), tag: "InvalidRequest" },
    { ...proves, server: "guarded" },
  ),
)

const memoryGrpc: ReadonlyArray<GrpcCase> = [
  rpc("none", method.systemSharedMemoryStatus, {}, { code: 0, replies: ["{}"] }, { proves: ["C39", "C22"] }),
  rpc(
    "one that is not there",
    method.systemSharedMemoryStatus,
    { name: "x" },
    { code: GrpcCode.NOT_FOUND, message: notSystem },
    proves,
  ),
  rpc("while it is off", method.systemSharedMemoryRegister, { name: "x", key: "/k", byteSize: 64n }, offGrpc, {
    proves: ["C39", "C22"],
  }),
  rpc("while it is off", method.systemSharedMemoryUnregister, { name: "x" }, offGrpc, { proves: ["C39", "C22"] }),
  rpc("none", method.cudaSharedMemoryStatus, {}, { code: 0, replies: ["{}"] }, { proves: ["C39", "C22"] }),
  rpc(
    "one that is not there",
    method.cudaSharedMemoryStatus,
    { name: "x" },
    { code: GrpcCode.NOT_FOUND, message: notCuda },
    proves,
  ),
  rpc(
    "refused",
    method.cudaSharedMemoryRegister,
    { name: "x" },
    { code: GrpcCode.INVALID_ARGUMENT, message: cuda },
    { proves: ["C39", "C22"] },
  ),
  rpc("nothing to do", method.cudaSharedMemoryUnregister, {}, { code: 0, replies: ["{}"] }, { proves: ["C39", "C22"] }),
]

const fixed = "explicit model load / unload is not allowed if polling is enabled"
const noChoice = "'repository_name' specification is not supported"

const repositoryHttp: ReadonlyArray<HttpCase> = [
  ...["", "{}", '{"ready":true}', '{"ready":false}', '{"other":1}'].map((body) =>
    http(
      `the index asked with ${JSON.stringify(body)}`,
      { path: "/v2/repository/index", body },
      { status: 200, body: /^\[\{"name":"simple","version":"1","state":"READY"/ },
      { proves: ["C32"] },
    ),
  ),
  http(
    "the index of what is ready leaves out what is not",
    { path: "/v2/repository/index", body: '{"ready":true}' },
    { status: 200, body: /^(?!.*"stopped")/ },
    { proves: ["C32"], server: "small" },
  ),
  http(
    "the index has what is not ready",
    { path: "/v2/repository/index", body: "" },
    { status: 200, body: /"name":"stopped","version":"1","state":"UNAVAILABLE"/ },
    { proves: ["C32"], server: "small" },
  ),
  ...["1", '"true"', "null", "[]"].map((ready) =>
    http(
      `the index where ready is ${ready}`,
      { path: "/v2/repository/index", body: `{"ready":${ready}}` },
      { status: 400, error: "Invalid value for 'ready': expected a boolean" },
      { proves: ["C32"] },
    ),
  ),
  http(
    "the index asked in no JSON",
    { path: "/v2/repository/index", body: "{" },
    { status: 400, error: /^failed to parse/ },
    { proves: ["C15"] },
  ),
  ...["load", "unload"].map((operation) =>
    http(
      `${operation} of a model`,
      { path: `/v2/repository/models/simple/${operation}`, body: "" },
      { status: 503, error: fixed },
      { proves: ["C32"] },
    ),
  ),
  http(
    "a repository by name",
    { path: "/v2/repository/r/index", body: "" },
    { status: 501, error: noChoice },
    { proves: ["C32"] },
  ),
]

const repositoryGrpc: ReadonlyArray<GrpcCase> = [
  rpc(
    "all",
    method.repositoryIndex,
    {},
    { code: 0, replies: [/^\{"models":\[\{"name":"simple","version":"1","state":"READY"/] },
    { proves: ["C32", "C22"] },
  ),
  rpc(
    "by name",
    method.repositoryIndex,
    { repositoryName: "r" },
    { code: GrpcCode.UNIMPLEMENTED, message: noChoice },
    { proves: ["C32"] },
  ),
  rpc(
    "refused",
    method.repositoryModelLoad,
    { modelName: "simple" },
    { code: GrpcCode.UNAVAILABLE, message: fixed },
    { proves: ["C32", "C22"] },
  ),
  rpc(
    "refused",
    method.repositoryModelUnload,
    { modelName: "simple" },
    { code: GrpcCode.UNAVAILABLE, message: fixed },
    { proves: ["C32", "C22"] },
  ),
]

const settings = '"log_info":true,"log_warning":true,"log_error":true,"log_verbose_level":0,"log_format":"default"'
const fileFixed = "log file location can not be updated through network protocol"

const loggingHttp: ReadonlyArray<HttpCase> = [
  http("the log's settings", { path: "/v2/logging" }, { status: 200, body: `{"log_file":"",${settings}}` }, proves),
  http(
    "no change of the log's settings",
    { path: "/v2/logging", body: "{}" },
    { status: 200, body: `{"log_file":"",${settings}}` },
    proves,
  ),
  {
    name: "a change of the log's settings, and back",
    proves: ["C39"],
    steps: [
      [
        { path: "/v2/logging", body: '{"log_verbose_level":1,"log_format":"ISO8601"}' },
        { status: 200, body: /"log_verbose_level":1,"log_format":"ISO8601"/ },
      ],
      [{ path: "/v2/logging" }, { status: 200, body: /"log_verbose_level":1/ }],
      [
        { path: "/v2/logging", body: '{"log_verbose_level":0,"log_format":"default"}' },
        { status: 200, body: `{"log_file":"",${settings}}` },
      ],
    ],
  },
  http("the log's file", { path: "/v2/logging", body: '{"log_file":"x"}' }, { status: 501, error: fileFixed }, proves),
  http(
    "an unknown log format",
    { path: "/v2/logging", body: '{"log_format":"x"}' },
    { status: 400, error: /log_format/ },
    proves,
  ),
  ...[
    '{"log_info":1}',
    '{"log_verbose_level":-1}',
    '{"log_verbose_level":true}',
    '{"log_format":1}',
    "[]",
    "{",
    '{"log_info":[]}',
  ].map((body) =>
    http(`settings of the log as ${body}`, { path: "/v2/logging", body }, { status: 400, error: /./ }, proves),
  ),
  http("an unknown log setting", { path: "/v2/logging", body: '{"log_x":1}' }, { status: 400, error: /log_x/ }, proves),
]

const loggingGrpc: ReadonlyArray<GrpcCase> = [
  rpc(
    "as they are",
    method.logSettings,
    {},
    { code: 0, replies: [/"log_verbose_level":\{"uint32Param":0\}/] },
    { proves: ["C39", "C22"] },
  ),
  rpc(
    "the file",
    method.logSettings,
    { settings: { log_file: { parameterChoice: { case: "stringParam", value: "x" } } } },
    { code: GrpcCode.UNIMPLEMENTED, message: fileFixed },
    proves,
  ),
  rpc(
    "an unknown format",
    method.logSettings,
    { settings: { log_format: { parameterChoice: { case: "stringParam", value: "x" } } } },
    { code: GrpcCode.INVALID_ARGUMENT, message: /log_format/ },
    proves,
  ),
  rpc(
    "a level that is true",
    method.logSettings,
    { settings: { log_verbose_level: { parameterChoice: { case: "boolParam", value: true } } } },
    {
      code: GrpcCode.INVALID_ARGUMENT,
      message: "invalid value type for 'log_verbose_level' setting, expected uint32_param.",
    },
    proves,
  ),
]

export const extensionsHttp: ReadonlyArray<HttpCase> = [
  ...memoryHttp,
  ...memoryAllowed,
  ...emptyKeysHttp,
  ...repositoryHttp,
  ...loggingHttp,
]

export const extensionsGrpc: ReadonlyArray<GrpcCase> = [
  ...memoryGrpc,
  ...emptyKeysGrpc,
  ...repositoryGrpc,
  ...loggingGrpc,
]
