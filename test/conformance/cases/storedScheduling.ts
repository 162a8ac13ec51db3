/**
 * What a repository's configurations say of executions, as one request shows it: decoupled models as those in code, warm-ups,
 * and how the configuration is told.
 */
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { type GrpcCase, type HttpCase, http, type InferCase, rpc } from "../Case.ts"
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

const asksDecoupled = ({ steps }: HttpCase) =>
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
    proves: ["C36"],
    request: {
      model: "warmed",
      inputs: [tensor("X", "INT32", [1, 2], [1, 2]), tensor("TEXT", "BYTES", [1, 1], ["c"])],
    },
    expected: { outputs: [tensor("SEEN", "BYTES", [1, 1], [seen])] },
  },
]

export const storedSchedulingHttp: ReadonlyArray<HttpCase> = [
  ...[...decoupledHttp, ...generate.filter(asksDecoupled)].map(inRepository),
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

export const storedSchedulingGrpc: ReadonlyArray<GrpcCase> = [
  ...decoupled.map(inRepository),
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
