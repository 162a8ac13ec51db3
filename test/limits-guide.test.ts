/** The guide on limits: its values are those of the code, its flags exist, and the refusals are as it says. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Client } from "@nereid/client"
import { type Errors, Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { nereid, root } from "./Program.ts"

const guide = readFileSync(join(root, "docs/guides/limits.md"), "utf8")

/** Cells of the rows of all tables, by the first cell. */
const rows = new Map(
  [...guide.matchAll(/^\| (.*) \|$/gm)].map(([, row = ""]) => {
    const [limit = "", byDefault = "", option = ""] = row.split(" | ")
    return [limit, { byDefault, option }] as const
  }),
)

/** The guide's rows, and the code that each value comes from: the first group is a number or a duration. */
const sources: ReadonlyArray<readonly [limit: string, file: string, value: RegExp]> = [
  [
    "responses of a request that its reader has not taken",
    "python/src/process/ResponseCredit.ts",
    /responsesAhead = (.*)/,
  ],
  [
    "responses to a call of another model that the code has not read",
    "python/python/nereid_model/response_stream.py",
    /AHEAD = (.*)/,
  ],
  ["HTTP body", "server/src/FrontEnds.ts", /maxInputSize = ([^,]+),/],
  ["HTTP body after decompression", "server/src/http/HttpServer.ts", /maxInputSize = ([^,]+),/],
  ["gRPC message", "server/src/FrontEnds.ts", /maxMessageSize = ([^}]+) }/],
  ["rate of a request body, over 10 seconds", "server/src/limit/ReceiveRate.ts", /minRate = (.*)/],
  ["response that the client does not read", "server/src/FrontEnds.ts", /sendTimeout \?\? "(.*?)"/],
  [
    "client that has ended its side of an HTTP/1.1 connection, in a response that [cannot be probed](differences-from-triton.md#clients-that-end-their-side)",
    "server/src/FrontEnds.ts",
    /sendTimeout \?\? "(.*?)"/,
  ],
  [
    "bytes of the files of repositories in [object storage](object-storage.md)",
    "repository/src/mirror/StorageOptions.ts",
    /defaultMaxCacheBytes = (.*)/,
  ],
  ["objects of a repository in object storage", "repository/src/storage/store/ObjectStore.ts", /maxObjects = (.*)/],
  ["bytes of the key of an object", "repository/src/mirror/KeyRules.ts", /maxKeyBytes = (.*)/],
  [
    "requests for contents to object storage at a time, for each cache",
    "repository/src/storage/cache/ObjectCache.ts",
    /maxRequests = (.*)/,
  ],
  ["attempts of a request to object storage", "repository/src/storage/http/Retry.ts", /maxAttempts = (.*)/],
  ["response in a shared cache", "server/src/cache/RedisCache.ts", /maxValueBytes = (.*)/],
  ["wait for a lookup in a shared cache", "server/src/cache/RedisCache.ts", /defaultTimeout = (.*)/],
  ["bytes that wait to be sent to a shared cache", "server/src/cache/RedisCache.ts", /maxUnsentBytes = (.*)/],
  ["calls of `Health/Watch` at a time", "server/src/grpc/HealthService.ts", /maxWatchers = (.*)/],
  ["pipelined requests of an HTTP/1.1 connection at a time", "server/src/port/HttpListener.ts", /maxPipelined = (.*)/],
  [
    "frames without a request or data: settings, pings, priorities, resets, window updates, empty and unknown frames",
    "http2/src/connection/FloodBudget.ts",
    /burst = (.*)/,
  ],
  [
    "requests and streams that are refused for a violation of the protocol",
    "http2/src/connection/FloodBudget.ts",
    /errorCost = (.*)/,
  ],
  ["bytes of a header block, encoded", "http2/src/connection/PendingBlock.ts", /maxBlockSize = (.*)/],
  ["CONTINUATION frames of a header block", "http2/src/connection/PendingBlock.ts", /maxContinuations = (.*)/],
  [
    "header fields of a request, as SETTINGS_MAX_HEADER_LIST_SIZE counts them",
    "http2/src/connection/HeaderFrames.ts",
    /maxHeaderListSize = (.*)/,
  ],
  ["frame that a client sends", "http2/src/frame/Frame.ts", /frameSize: ([\d_]+)/],
  ["header table, in each direction", "http2/src/hpack/DynamicTable.ts", /defaultTableSize = (.*)/],
  [
    "bytes that wait in the socket of a client that does not read",
    "http2/src/socket/SocketConnection.ts",
    /maxUnsent = (.*)/,
  ],
  ["replies to frames behind these bytes", "http2/src/socket/SocketConnection.ts", /maxBehind = (.*)/],
  [
    "bytes of requests whose calls do not read, per connection",
    "http2/src/connection/ReceiveWindows.ts",
    /maxHeldBytes = (.*)/,
  ],
  ["request that a client does not end after its response", "server/src/grpc/HalfOpen.ts", /lingerMillis = (.*)/],
  ["cancelled calls of a gRPC connection", "server/src/grpc/ResetBudget.ts", /burst = (.*)/],
  ["chunks of an HTTP body without a length", "server/src/http/HttpBody.ts", /maxChunks = (.*)/],
  [
    "bytes that a client may still send after the refusal of its body over HTTP/1.1",
    "server/src/port/LingeringClose.ts",
    /lingerBytes = (.*)/,
  ],
  ["metric families of all models in Python", "python/src/ports/MetricFamilies.ts", /maxFamilies = (.*)/],
  ["metrics of one family of models in Python", "python/src/ports/MetricFamilies.ts", /maxSeries = (.*)/],
  [
    "calls of other models by one Python process at a time",
    "repository/src/python/PythonSource.ts",
    /callThreads = (.*)/,
  ],
  ["JSON arrays inside arrays", "core/src/codec/json/JsonElements.ts", /maxDepth = (.*)/],
  [
    "inputs, outputs, parameters or dims of a JSON request, each",
    "core/src/codec/json/JsonMembers.ts",
    /maxElements = (.*)/,
  ],
  [
    "elements of one row of an output whose classes are requested",
    "core/src/wire/Classification.ts",
    /maxElements = (.*)/,
  ],
  [
    "classes of the classification extension, all rows of an output",
    "core/src/wire/Classification.ts",
    /maxClasses = (.*)/,
  ],
  [
    "body of a settings request (`/v2/logging`, `/v2/trace/setting`)",
    "server/src/http/HttpSettings.ts",
    /maxBodySize = (.*)/,
  ],
  ["part of a model in [`/openapi.json`](openapi.md)", "server/src/openapi/OpenApiDocument.ts", /maxPartLength = (.*)/],
  ["parts of all models in it", "server/src/openapi/OpenApiDocument.ts", /maxPartsLength = (.*)/],
  ["labels of a tensor in it", "core/src/openapi/TensorSchema.ts", /maxLabels = (.*)/],
  ["requests in a model's queue, per priority level", "core/src/model/QueuePolicy.ts", /defaultMaxQueueSize = (.*)/],
  ["requests in flight inside an ensemble", "core/src/ensemble/Ensemble.ts", /defaultMaxInflight = (.*)/],
  ["bytes of a response cache", "core/src/cache/ResponseCache.ts", /defaultMaxBytes = (.*)/],
  ["sequences of a model in code at a time", "core/src/model/SequenceOptions.ts", /maxSequences = ([\d_]+)/],
  [
    "requests that wait, of a model in code with sequences",
    "core/src/model/SequenceOptions.ts",
    /maxSequences = ([\d_]+)/,
  ],
  ["calls of one session that wait in its client", "core/src/call/SequenceCall.ts", /maxWaiting = (.*)/],
  ["sequences that wait in the backlog", "core/src/model/Sequencing.ts", /maxBacklog: ([\d_]+)/],
  [
    "requests that wait, of a model with `sequence_batching`",
    "repository/src/config/Declaration.ts",
    /maxSequenceRequests = (.*)/,
  ],
  [
    "idle sequence of a model in code, from its last response",
    "core/src/model/SequenceOptions.ts",
    /maxIdle = "(.*?)"/,
  ],
  [
    "idle sequence of a model in a repository, from its last response",
    "repository/src/config/ConfigDefaults.ts",
    /idle === 0n \? ([\d_]+)n/,
  ],
  ["bytes of the state tensors of one sequence", "core/src/model/Sequencing.ts", /maxStateBytes: ([\d *]+)/],
  ["bytes of the state tensors of all sequences", "core/src/model/Sequencing.ts", /maxTotalStateBytes: ([\d *]+)/],
  ["bytes of a string as the id of a sequence", "core/src/wire/KnownParameters.ts", /longestSequenceId = (.*)/],
  ["ended sequences whose end is remembered", "core/src/sequence/SequenceHistory.ts", /maxSequences = (.*)/],
  [
    "models whose ended sequences are remembered, also after a reload",
    "core/src/sequence/SequenceHistory.ts",
    /maxModels = (.*)/,
  ],
  [
    "numbers ahead of the expected [`sequence_number`](model-repository.md#numbered-requests) that may wait",
    "core/src/sequence/NumberedRequests.ts",
    /window: ([\d_]+),/,
  ],
  ["numbered requests that wait, of all sequences", "core/src/sequence/NumberedRequests.ts", /maxWaiting: ([\d_]+),/],
  [
    "bytes of the replies that are kept for repeated requests",
    "core/src/sequence/NumberedRequests.ts",
    /maxReplyBytes: ([\d *]+)/,
  ],
  ["ended sequences whose last reply is kept", "core/src/sequence/NumberedRequests.ts", /maxEnded = (.*)/],
  [
    "responses of one request to a [step by step model](sequences.md#requests-that-run-step-by-step) that wait for their reader",
    "core/src/provide/EmissionStage.ts",
    /limit = (.*)/,
  ],
  ["end of a session, without a response of the server", "core/src/call/SessionCalls.ts", /closeTimeout = "(.*)"/],
  [
    "ids in a list of [live sequences](protocol.md#live-sequences)",
    "server/src/http/HttpSequences.ts",
    /maxListed = (.*)/,
  ],
  ["sequences of one export or import", "core/src/codec/json/JsonMembers.ts", /maxElements = (.*)/],
  ["wait of an export for running requests", "core/src/transfer/SequenceMove.ts", /wait = "(.*?)"/],
  ["body that selects sequences for an export", "server/src/http/HttpSequences.ts", /maxSelectionSize = (.*)/],
  [
    "import of sequences by the other server, at a stop",
    "server/src/HandOver.ts",
    /timeout = Duration.seconds\((.*)\)/,
  ],
  ["requests in flight on one `ModelStreamInfer`", "server/src/grpc/InferStream.ts", /maxPending = (.*)/],
  ["bytes of these requests", "server/src/grpc/InferStream.ts", /maxBytes = (.*)/],
  ["responses that wait for a slow reader, per stream", "server/src/grpc/InferStream.ts", /maxReady = (.*)/],
  ["memory of open calls without their messages", "server/src/grpc/SessionCalls.ts", /callSize = (.*)/],
  ["streams of one gRPC connection", "server/src/grpc/GrpcHttp2.ts", /maxConcurrentStreams = (.*)/],
  ["bytes that a client may send ahead, per stream", "server/src/grpc/GrpcHttp2.ts", /streamWindow = (.*)/],
  ["bytes that a client may send ahead, per connection", "server/src/grpc/GrpcHttp2.ts", /connectionWindow = (.*)/],
  ["connections of each port, except that of metrics", "server/src/FrontEnds.ts", /maxConnections = ([^,]+),/],
  ["connections of the metrics port", "server/src/metrics/MetricsServer.ts", /maxConnections = (.*)/],
  ["idle HTTP connection", "server/src/port/HttpListener.ts", /keepAliveTimeout = (.*)/],
  [
    "TLS handshake, and the first bytes on a port for both protocols",
    "server/src/port/HttpListener.ts",
    /greetingTimeoutMillis = ([\d_]+)/,
  ],
  [
    "settings of the client, on a new HTTP/2 connection",
    "server/src/grpc/GrpcServer.ts",
    /greetingTimeoutMillis = ([\d_]+)/,
  ],
  [
    "header block or frame that does not become complete, except the data of a message",
    "server/src/grpc/GrpcServer.ts",
    /greetingTimeoutMillis = ([\d_]+)/,
  ],
  ["gRPC message that does not become complete", "server/src/grpc/GrpcServer.ts", /receiveTimeoutMillis = ([^,]+),/],
  ["replaced or unloaded model: its requests", "core/src/lifecycle/CodeModels.ts", /defaultDrain = "(.*)"/],
  [
    "restarts in a row of an ONNX or worker thread, or of a Python process",
    "core/src/instance/Supervisor.ts",
    /defaultTimes = (.*)/,
  ],
  [
    "life of a thread or process after which its death begins a new row",
    "core/src/instance/Supervisor.ts",
    /healthyPeriod = (.*)/,
  ],
  ["`finalize`", "python/src/Python.ts", /stopTimeout"\) \?\? ([\d_]+)/],
  ["batches of an `async def` at a time, in each instance", "python/src/Python.ts", /concurrency = (\d+),/],
  ["start of a Python interpreter", "python/src/process/ProcessStart.ts", /launchTimeout = (.*)/],
  ["check of a Python interpreter", "python/src/environment/Interpreter.ts", /probeTimeout = (.*)/],
  ["answer of `is_ready`", "python/src/process/ReadyCheck.ts", /limit = (.*)/],
  ["answer of a process to a request for its stacks", "python/src/process/Stacks.ts", /answerTimeout = (.*)/],
  ["threads of a Python process for calls of other models", "python/src/Python.ts", /callThreads = (.*)/],
  ["open calls of other models, for each of these threads", "python/src/process/ControlCalls.ts", /maxWaiting = (.*)/],
  ["header of a frame between server and process", "python/src/wire/FrameReader.ts", /maxHeaderLength = (.*)/],
  ["body of such a frame", "python/src/wire/FrameReader.ts", /maxBodyLength = (.*)/],
  ["free memory that is kept for outputs, of all processes", "python/src/wire/BodyPool.ts", /defaultMaxBytes = (.*)/],
  ["free memory that a process keeps for inputs", "python/python/nereid_model/buffers.py", /_KEPT_BYTES = (.*)/],
  ["characters of a printed line", "python/src/process/PrintedLines.ts", /maxLength = (.*)/],
  ["printed lines of a process at once", "python/src/process/PrintedLines.ts", /burst = (.*)/],
  ["printed lines of a process per second after that", "python/src/process/PrintedLines.ts", /perSecond = (.*)/],
  ["lines of stderr in the error of a load", "python/src/process/ProcessStart.ts", /shownLines = (.*)/],
  [
    "files of an environment's archive, unpacked",
    "python/src/environment/EnvironmentArchive.ts",
    /maxBytes: ([\d *]+)/,
  ],
  ["entries of an environment's archive", "python/src/environment/EnvironmentArchive.ts", /maxEntries: ([\d_]+)/],
  ["path of such an entry", "python/src/environment/EnvironmentArchive.ts", /maxPathLength = (.*)/],
  ["extended header of such an entry", "python/src/environment/TarReader.ts", /maxExtension = (.*)/],
  ["pause before the first restart", "core/src/instance/Supervisor.ts", /defaultDelay = "(.*)"/],
  ["start of a worker's handler", "worker/src/Worker.ts", /millis\("startTimeout", "(.*)"\)/],
  ["batch of a worker that no caller waits for", "worker/src/Worker.ts", /millis\("cancelTimeout", "(.*)"\)/],
  [
    "batch in code that no caller waits for, while its model unloads or the server stops",
    "core/src/instance/Instance.ts",
    /defaultInterruptTimeout = (.*)/,
  ],
  ["finalizers of a worker", "worker/src/Worker.ts", /millis\("stopTimeout", "(.*)"\)/],
  ["batch in shared memory of an ONNX thread", "onnx/src/Slots.ts", /maxSlotBytes = (.*)/],
  [
    "batch with dynamic dims in that memory, inputs and outputs together",
    "onnx/src/DynamicSlot.ts",
    /maxSlotBytes = (.*)/,
  ],
  ["instances of a model in `config.pbtxt`", "repository/src/config/InstanceGroupCheck.ts", /maxInstances = (.*)/],
  ["`.onnx` file, without weights in other files", "onnx/src/file/ModelSize.ts", /maxModelBytes = (.*)/],
  ["file with labels", "repository/src/directory/ModelDirectory.ts", /maxLabelBytes = (.*)/],
  ["file with an input for a warm-up", "repository/src/plan/ModelWarmUp.ts", /maxSampleBytes = (.*)/],
  ["script or module of a model", "repository/src/script/Script.ts", /maxModuleBytes = (.*)/],
  ["entries of a model's directory, and those below it", "onnx/src/file/FileCall.ts", /maxEntries = (.*)/],
  ["file system call of a load", "onnx/src/file/FilePool.ts", /stallTimeoutMillis = (.*)/],
  ["file system calls at a time", "onnx/src/file/FilePool.ts", /maxThreads = (.*)/],
  ["file system calls that wait", "onnx/src/file/FilePool.ts", /maxQueued = (.*)/],
  ["file system calls that never returned", "onnx/src/file/FilePool.ts", /maxStalled = (.*)/],
  ["`config.pbtxt`", "repository/src/directory/ModelDirectory.ts", /maxConfigBytes = (.*)/],
  ["pixels of a picture", "image/src/Pixels.ts", /maxPixels = (.*)/],
  ["time to decode a picture", "image/src/Pixels.ts", /maxSeconds = (.*)/],
  ["series of one metric of a model", "core/src/metrics/MetricFamily.ts", /maxSeries = (.*)/],
  ["JSON of a declared error", "core/src/wire/ErrorHeaders.ts", /maxDocumentLength = (.*)/],
  [
    "JSON of the declared contract in the metadata of a model",
    "core/src/contract/ContractDocument.ts",
    /maxLength = (.*)/,
  ],
  ["elements of a default in that contract", "core/src/contract/DefaultDocument.ts", /maxElements = (.*)/],
  ["inputs or outputs of a generated contract, each", "core/src/contract/ContractFile.ts", /maxTensors = (.*)/],
  ["regions of system shared memory", "server/src/memory/SystemSharedMemory.ts", /maxRegions = ([^,]+),/],
  ["requests to other models in one trace", "server/src/trace/RequestTrace.ts", /maxChildren = (.*)/],
  ["activities of one request in its trace", "core/src/handler/RequestScope.ts", /maxActivities = (.*)/],
  [
    "spans that wait for export, in the OpenTelemetry mode of traces",
    "server/src/trace/OpenTelemetrySettings.ts",
    /maxQueueSize = (.*?),/,
  ],
  ["export of spans, with its retries", "server/src/trace/SpanExport.ts", /exportTimeout = "(.*)"/],
  ["export of spans at the stop", "server/src/trace/SpanExport.ts", /stopTimeout = "(.*)"/],
  ["log lines that wait for a slow disk", "server/src/log/LogSink.ts", /maxPendingBytes = (.*)/],
  ["viewers of the live data, and of the log, each", "dashboard/src/live/LiveMessage.ts", /maxViewers = (.*)/],
  ["steps of one second that are kept", "dashboard/src/live/LiveStep.ts", /maxSteps = (.*)/],
  ["bytes of these steps, as JSON", "dashboard/src/live/LiveStep.ts", /maxRingBytes = (.*)/],
  ["messages that a viewer has not read", "server/src/live/EventStream.ts", /maxUnread = (.*)/],
  ["slow requests that are kept", "dashboard/src/live/SlowRequest.ts", /maxSlowRequests = (.*)/],
  ["age of a slow request", "dashboard/src/live/SlowRequest.ts", /slowRequestAge = (.*)/],
  ["log lines that are kept", "dashboard/src/live/LogMessage.ts", /maxLogLines = (.*)/],
  ["characters of these lines, as JSON", "server/src/live/LogRing.ts", /maxRingLength = (.*)/],
  ["characters of a kept log line", "dashboard/src/live/LogMessage.ts", /maxLogLineLength = (.*)/],
  ["calls in flight", "client/src/channel/ClientOptions.ts", /maxInFlight = ([^,]+),/],
  ["response", "client/src/channel/ClientOptions.ts", /maxResponseSize = ([^,]+),/],
  ["connecting", "client/src/channel/ClientOptions.ts", /connectTimeout = "(.*?)"/],
  ["URLs of a list of replicas", "client/src/replicas/ReplicaUrls.ts", /maxServers = (.*)/],
  ["addresses of a name that are used", "client/src/replicas/Resolver.ts", /maxAddresses = (.*)/],
  ["time between two lookups of a name", "client/src/replicas/ReplicatedOptions.ts", /lookupInterval = "(.*?)"/],
  ["attempts of a call, with retries and hedges", "client/src/replicas/ReplicatedOptions.ts", /attempts = (\d+)/],
  ["tokens of retries and hedges", "client/src/replicas/ReplicatedOptions.ts", /tokens = (\d+)/],
  ["ejection of a replica", "client/src/replicas/ReplicatedOptions.ts", /maxTime = "(.*?)"/],
  ["sequences whose replicas a client remembers", "client/src/replicas/SequenceAffinity.ts", /maxSequences = (.*)/],
  ["replicas with metrics of their own, per client", "client/src/replicas/EffectMetrics.ts", /maxSeries = (.*)/],
  ["parts of the sequences of a model in a cluster", "cluster/src/protocol/SequencePart.ts", /count = (.*)/],
  ["calls of a model in flight from one process of a cluster", "cluster/src/Cluster.ts", /maxInFlight = ([\d_]+)/],
  ["call into a cluster, with its wait for an owner", "cluster/src/Cluster.ts", /timeout = "(.*?)"/],
  [
    "bytes of the response that an owner keeps for a repeated call",
    "cluster/src/owner/KnownSequences.ts",
    /maxReply = (.*)/,
  ],
  ["bytes of all responses that an owner keeps", "cluster/src/owner/KnownSequences.ts", /maxReplies = (.*)/],
  ["wait of a part that leaves for running requests", "cluster/src/owner/PartOwner.ts", /exportWait = "(.*)"/],
  ["chunks of a large batch in flight", "core/src/call/ChunkedCall.ts", /defaultConcurrentChunks = (.*)/],
]

const units: Readonly<Record<string, number>> = {
  "": 1,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  milliseconds: 1,
  millis: 1,
  second: 1000,
  seconds: 1000,
  minute: 60_000,
  minutes: 60_000,
}

/** The number that a cell or a duration begins with, in bytes or milliseconds: "64 MiB", "75 seconds", "1 minute". */
const measured = (text: string): number => {
  const [, number = "", unit = ""] = /^([\d,]+)(?: ([A-Za-z]+))?/.exec(text) ?? []
  return Number(number.replaceAll(",", "")) * (units[unit] ?? 1)
}

/** The value of a product of literals, such as `64 * 2 ** 20`. */
const evaluated = (expression: string): number =>
  expression
    .replaceAll("_", "")
    .split(/(?<!\*) \* (?!\*)/)
    .map((factor) => factor.split(" ** ").map(Number))
    .reduce((product, [base = Number.NaN, exponent = 1]) => product * base ** exponent, 1)

/** Milliseconds of one unit in the code, for the limits whose unit is another one. */
const unitMillis: Readonly<Record<string, number>> = {
  "time to decode a picture": 1000,
  "idle sequence of a model in a repository, from its last response": 0.001,
  "import of sequences by the other server, at a stop": 1000,
}

it.each(sources)("%s", (limit, file, pattern) => {
  const [, found = ""] = pattern.exec(readFileSync(join(root, "packages", file), "utf8")) ?? []
  const value = /[a-z]/.test(found) ? measured(found) : evaluated(found)
  const row = rows.get(limit)
  expect(value).toBeGreaterThan(0)
  expect(measured(row?.byDefault ?? ""), `${limit}: ${row?.byDefault}`).toBe(value * (unitMillis[limit] ?? 1))
})

it("every row with a value is one of these, or has no limit by default", () => {
  const held = new Set(sources.map(([limit]) => limit))
  const others = [...rows].filter(([limit, { byDefault }]) => !held.has(limit) && /^[\d]/.test(byDefault))
  // `drainTimeout`, whose flag has the default, and 0 for two that are off.
  expect(others.map(([limit]) => limit)).toEqual([
    "rows of a batch",
    "wait for a fuller batch",
    // Node's own.
    "HTTP request that does not become complete",
    "stop: requests in flight",
  ])
})

it("its flags exist, with their defaults", { timeout: 60_000 }, async () => {
  const { output } = await nereid("serve", "--help").ended
  const flags = guide.match(/--[a-z][\w-]+/g) ?? []
  expect(flags.length).toBeGreaterThan(5)
  expect(flags.filter((flag) => !output.includes(`${flag} `))).toEqual([])
  expect(output).toMatch(/--exit-timeout-secs [^]*?\(default 30\)/)
})

class Slow extends Model.Service<Slow>()("slow", {
  inputs: { x: Tensor.FP32(-1) },
  outputs: { y: Tensor.FP32(-1) },
  maxBatchSize: 1,
  batching: { maxQueueSize: 1 },
}) {}

describe("a limit that is reached", () => {
  const start = (
    options: Pick<Server.ServerOptions, "drainTimeout" | "maxInFlightSize" | "maxInputSize" | "maxMessageSize">,
  ) =>
    Server.start(
      [Slow],
      Model.each(Slow, () => Effect.never),
      { ...options, http: 0, grpc: 0, metrics: false },
    )

  const post = async (port: number, count: number, shape = [1, count]) => {
    const inputs = [{ name: "x", datatype: "FP32", shape, data: Array(count).fill(0) }]
    const url = `http://localhost:${port}/v2/models/slow/infer`
    const response = await fetch(url, { method: "POST", body: JSON.stringify({ inputs }) })
    return [response.status, response.headers.get("nereid-error")]
  }

  it("a body, a message and a number of rows above their limits", async () => {
    await using server = await start({ maxInputSize: 1000, maxMessageSize: 1000 })
    expect(await post(server.http.port, 1000)).toEqual([400, "InvalidRequest"])
    expect(await post(server.http.port, 2, [2, 1])).toEqual([400, "InvalidRequest"])
    await using slow = await Client.connect(Slow, { url: `grpc://localhost:${server.grpc.port}` })
    const x = Tensor.make("FP32", [1000], new Float32Array(1000))
    await expect(slow.infer({ x })).rejects.toMatchObject({ _tag: "InvalidRequest" } satisfies { _tag: Errors.Tag })
  })

  it("requests beyond the memory of all, and beyond the queue", async () => {
    await using small = await start({ maxInFlightSize: 1000 })
    expect(await post(small.http.port, 1000)).toEqual([503, "QueueFull"])
    await using server = await start({ drainTimeout: 0 })
    await using slow = await Client.connect(Slow, { url: `grpc://localhost:${server.grpc.port}` })
    const x = Tensor.make("FP32", [1], new Float32Array(1))
    const controller = new AbortController()
    // One may run and one may wait, so at least one of three is too many.
    const three = [1, 2, 3].map(() => slow.infer({ x }, { signal: controller.signal }))
    await expect(Promise.race(three)).rejects.toMatchObject({ _tag: "QueueFull" })
    controller.abort()
    await Promise.allSettled(three)
    await expect(slow.infer({ x }, { timeout: "10 millis" })).rejects.toMatchObject({ _tag: "DeadlineExceeded" })
  })
})
