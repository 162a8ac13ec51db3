/**
 * Which part of the protocol each RPC belongs to, and the interceptor that keeps the restricted ones
 * (RestrictedApis.ts).
 */
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

const byName = new Map<string, Api>(Object.entries(apis))

const byPath = new Map<string, Api>([
  ...Health.methods.map(({ name }) => [`/${Health.typeName}/${name}`, "health"] as const),
  ...GRPCInferenceService.methods.map(
    ({ name, localName }) =>
      [`/${GRPCInferenceService.typeName}/${name}`, byName.get(localName) ?? "metadata"] as const,
  ),
])

/** API of a path with or without a query. Reflection, and a path that does not exist, count as metadata. */
export const ofPath = (url: string): Api => {
  const query = url.indexOf("?")
  return byPath.get(query < 0 ? url : url.slice(0, query)) ?? "metadata"
}

/** Refuses calls of restricted RPCs, streams included. */
export const restricted = (restrictedApis: RestrictedApis): Interceptor => {
  const guards = new Map<string, Guard>()
  for (const [path, api] of byPath) {
    const guard = restrictedApis(api)
    if (guard !== undefined) guards.set(path, guard)
  }
  return (next) => (request) => {
    const { parent, name } = request.method
    const guard = guards.get(`/${parent.typeName}/${name}`)
    if (guard !== undefined && !guard.permits(request.header.get(guard.header))) {
      throw connectError(fromError(new Unavailable({ message: guard.refusal })))
    }
    return next(request)
  }
}
