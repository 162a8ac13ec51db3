/** Configurations of a repository, over both protocols. */
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { type GrpcCase, type HttpCase, http, rpc } from "../Case.ts"
import { configs } from "../StoredConfigs.ts"

const server = "stored"

export const storedConfigsHttp: ReadonlyArray<HttpCase> = Object.entries(configs).map(([name, { shows, proves }]) =>
  http(
    `configuration: ${name}`,
    { path: `/v2/models/${name}/config` },
    { status: 200, shows },
    { server, proves: ["C4", ...proves] },
  ),
)

export const storedConfigsGrpc: ReadonlyArray<GrpcCase> = Object.entries(configs).map(([name, { shows, proves }]) =>
  rpc(
    name,
    GRPCInferenceService.method.modelConfig,
    { name },
    { code: 0, shows: { config: shows } },
    { server, proves: ["C4", ...proves] },
  ),
)
