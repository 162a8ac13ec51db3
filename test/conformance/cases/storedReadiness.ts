/** Readiness of a repository's models, and the responses for unknown models. */
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { type GrpcCase, type HttpCase, http, rpc } from "../Case.ts"
import { on } from "./stored.ts"

const { method } = GRPCInferenceService

export const storedReadinessHttp: ReadonlyArray<HttpCase> = [
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

export const storedReadinessGrpc: ReadonlyArray<GrpcCase> = [
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
    { code: 0, replies: ["{}"] },
    on("C34", "A1.ready.version"),
  ),
  rpc(
    "a model that is not loaded",
    method.modelReady,
    { name: "idle" },
    { code: 0, replies: ["{}"] },
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
