/**
 * Which part of the protocol each RPC belongs to, and the interceptor that keeps the restricted ones
 * (RestrictedApis.ts).
 */
import type { DescMethod } from "@bufbuild/protobuf"
import type { Interceptor } from "@connectrpc/connect"
import { Unavailable } from "@nereid/core/Errors"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { Health } from "@nereid/protocol/health"
import { fromError } from "./CallStatus.ts"
import { connectError } from "./connectError.ts"
import type { Api, Guard, RestrictedApis } from "../gateway/RestrictedApis.ts"

const apis: { readonly [M in keyof typeof GRPCInferenceService.method]: Api } = {
  serverLive: "health",
  serverReady: "health",
  modelReady: "health",
  serverMetadata: "metadata",
  modelMetadata: "metadata",
  modelInfer: "inference",
  modelStreamInfer: "inference",
  modelConfig: "model-config",
  modelStatistics: "statistics",
  repositoryIndex: "model-repository",
  repositoryModelLoad: "model-repository",
  repositoryModelUnload: "model-repository",
  systemSharedMemoryStatus: "shared-memory",
  systemSharedMemoryRegister: "shared-memory",
  systemSharedMemoryUnregister: "shared-memory",
  cudaSharedMemoryStatus: "shared-memory",
  cudaSharedMemoryRegister: "shared-memory",
  cudaSharedMemoryUnregister: "shared-memory",
  traceSetting: "trace",
  logSettings: "logging",
}

/** Refuses calls of restricted RPCs, streams included. */
export const restricted = (restrictedApis: RestrictedApis): Interceptor => {
  const guards = new Map<DescMethod, Guard>()
  const keep = (method: DescMethod, api: Api | undefined) => {
    const guard = api && restrictedApis(api)
    if (guard !== undefined) guards.set(method, guard)
  }
  const byName = new Map<string, Api>(Object.entries(apis))
  for (const method of GRPCInferenceService.methods) keep(method, byName.get(method.localName))
  keep(Health.method.check, "health")
  return (next) => (request) => {
    const guard = guards.get(request.method)
    if (guard !== undefined && !guard.permits(request.header.get(guard.header))) {
      throw connectError(fromError(new Unavailable({ message: guard.refusal })))
    }
    return next(request)
  }
}
