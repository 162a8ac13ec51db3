/**
 * Every RPC as Connect serves it, in gRPC, gRPC-Web and the Connect protocol: a thin table over the gateway. Plain gRPC
 * calls of ModelInfer and ModelStreamInfer normally bypass it (InferenceCalls.ts), with the same replies.
 */
import {
  Code,
  ConnectError,
  type ConnectRouter,
  type HandlerContext,
  type Interceptor,
  type StreamRequest,
  type StreamResponse,
} from "@connectrpc/connect"
import { Effect, Result } from "effect"
import type { InferenceError } from "@nereid/core/Errors"
import { tagHeader } from "@nereid/core/internal/wire/ErrorHeaders"
import * as ProtobufCodec from "@nereid/core/internal/codec/protobuf/ProtobufCodec"
import type { WireRequest, WireResponse } from "@nereid/core/internal/wire/WireRequest"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { Health } from "@nereid/protocol/health"
import type { ForwardedHeaders } from "../dispatch/ForwardedHeaders.ts"
import type { InferenceReply } from "../dispatch/InferenceDispatch.ts"
import * as ResponseSize from "../dispatch/ResponseSize.ts"
import * as CudaSharedMemory from "../memory/CudaSharedMemory.ts"
import type { Gateway, TensorMetadata } from "../gateway/Gateway.ts"
import * as BinaryRequests from "./BinaryRequests.ts"
import * as GrpcInferStream from "./GrpcInferStream.ts"
import { exhausted, fromError, internal, shuttingDown } from "./CallStatus.ts"
import { connectError } from "./connectError.ts"
import * as GrpcMemory from "./GrpcMemory.ts"
import * as GrpcRecords from "./GrpcRecords.ts"
import * as HealthService from "./HealthService.ts"
import * as LogSettings from "../log/LogSettings.ts"
import * as RequestPreparation from "../gateway/RequestPreparation.ts"
import * as Reflection from "./Reflection.ts"
import * as RepositoryIndex from "../gateway/RepositoryIndex.ts"
import * as TraceSettings from "../trace/TraceSettings.ts"
import type { Region } from "../memory/SharedMemory.ts"
import * as MonotonicTime from "@nereid/core/internal/request/MonotonicTime"

export const make =
  (gateway: Gateway, forward: ForwardedHeaders | undefined) =>
  (router: ConnectRouter): void => {
    const { sharedMemory } = gateway
    router.service(BinaryRequests.undecoded(GRPCInferenceService), {
      serverLive: () => ({ live: gateway.isLive() }),
      serverReady: async () => ({ ready: await Effect.runPromise(gateway.serverReady) }),
      modelReady: async ({ name, version }) => ({
        ready: orThrow(await Effect.runPromise(Effect.result(isReady(gateway, name, version)))),
      }),
      serverMetadata: () => ({ ...gateway.metadata, extensions: [...gateway.metadata.extensions] }),
      modelMetadata: ({ name, version }) => {
        const { contract, ...metadata } = orThrow(gateway.modelMetadata(name, version))
        return {
          ...metadata,
          contractJson: contract?.text ?? "",
          versions: [...metadata.versions],
          inputs: metadata.inputs.map(tensorMetadata),
          outputs: metadata.outputs.map(tensorMetadata),
        }
      },
      modelConfig: ({ name, version }) => ({ config: orThrow(gateway.modelConfiguration(name, version)) }),
      modelStatistics: ({ name, version }) => orThrow(gateway.modelStatistics(name, version)),
      modelStreamInfer: (requests, context) => GrpcInferStream.serve({ gateway, forward, toError }, requests, context),
      repositoryIndex: async ({ repositoryName, ready }) => {
        const index = gateway.repositoryIndex({ repository: repositoryName, readyOnly: ready })
        return { models: [...orThrow(await Effect.runPromise(Effect.result(index)))] }
      },
      repositoryModelLoad: ({ repositoryName, modelName, parameters }) => {
        const { load } = orThrow(gateway.repositoryControl(repositoryName))
        const overrides = orThrow(RepositoryIndex.loadOverrides(RepositoryIndex.fromMessage(parameters)))
        return done(load(modelName, overrides))
      },
      repositoryModelUnload: ({ repositoryName, modelName, parameters }) => {
        const { unload } = orThrow(gateway.repositoryControl(repositoryName))
        const dependents = orThrow(RepositoryIndex.unloadDependents(RepositoryIndex.fromMessage(parameters)))
        return done(unload(modelName, dependents))
      },
      traceSetting: (request) => {
        // An unknown model is reported before invalid settings.
        orThrow(gateway.traceSettings(request.modelName, {}))
        const changes = orThrow(TraceSettings.fromMessage(request))
        return TraceSettings.message(orThrow(gateway.traceSettings(request.modelName, changes)))
      },
      logSettings: (request) => LogSettings.message(gateway.logging.change(orThrow(LogSettings.fromMessage(request)))),
      modelInfer: async (request, context) => {
        const prepare = RequestPreparation.make(
          forward,
          context.values.get(GrpcRecords.record),
          context.requestHeader,
          (header) => header,
        )
        const wire = orThrow(Result.flatMap(ProtobufCodec.fromMessage(request), prepare))
        return ProtobufCodec.toMessage(await infer(gateway, wire, context))
      },
      systemSharedMemoryStatus: ({ name }) => ({
        regions: Object.fromEntries(
          orThrow(sharedMemory.status(name)).map((region) => [region.name, regionStatus(region)]),
        ),
      }),
      systemSharedMemoryRegister: ({ name, key, offset, byteSize }) => {
        orThrow(sharedMemory.register({ name, key, offset: Number(offset), byteSize: Number(byteSize) }))
        return {}
      },
      systemSharedMemoryUnregister: ({ name }) => {
        orThrow(sharedMemory.unregister(name))
        return {}
      },
      cudaSharedMemoryStatus: ({ name }) => {
        orThrow(CudaSharedMemory.status(name))
        return {}
      },
      cudaSharedMemoryRegister: ({ name }) => orThrow(CudaSharedMemory.register(name)),
      // No regions can be registered, so this always succeeds.
      cudaSharedMemoryUnregister: () => ({}),
    })
    HealthService.route(router, gateway)
    Reflection.route(router, [GRPCInferenceService, Health], gateway.stopping)
  }

/** Whether a model takes requests. As in Triton, an unknown model or version is not ready; over HTTP it is an error. */
const isReady = (gateway: Gateway, name: string, version: string): Effect.Effect<boolean, InferenceError> =>
  Effect.catchTag(gateway.modelReady(name, version), "ModelNotFound", () => Effect.succeed(false))

/** Converts errors that no handler raises on purpose. An RPC without a handler gets its tag; a defect is logged. */
export const failures =
  (logDefect: (defect: unknown) => void): Interceptor =>
  (next) =>
  async (request) => {
    const failure = (error: unknown): unknown => {
      if (error instanceof ConnectError) {
        if (error.code === Code.Unimplemented) error.metadata.set(tagHeader, "Unsupported")
        return error
      }
      // The client has disconnected, so a failure to send is not a defect.
      if (request.stream && request.signal.aborted) return error
      logDefect(error)
      return connectError(internal)
    }
    try {
      const response = await next(request.stream ? { ...request, message: received(request.message) } : request)
      return response.stream ? { ...response, message: failing(response.message, failure) } : response
    } catch (error) {
      throw failure(error)
    }
  }

/** Treats an error while reading the client's messages as a cancellation, unless it is a ConnectError. */
async function* received(messages: StreamRequest["message"]): StreamRequest["message"] {
  try {
    yield* messages
  } catch (error) {
    throw ConnectError.from(error, Code.Canceled)
  }
}

/** The messages of a stream, and its failure as `failure` has it. */
async function* failing(
  messages: StreamResponse["message"],
  failure: (error: unknown) => unknown,
): StreamResponse["message"] {
  try {
    yield* messages
  } catch (error) {
    throw failure(error)
  }
}

const infer = (gateway: Gateway, wire: WireRequest, context: HandlerContext): Promise<WireResponse> =>
  new Promise((resolve, reject) => {
    if (gateway.refusing.aborted) throw toError(shuttingDown)
    const timeout = context.timeoutMs()
    const deadline = timeout === undefined ? undefined : MonotonicTime.millis() + timeout
    const reply: InferenceReply = (outcome) => {
      if (Result.isFailure(outcome)) return reject(toError(outcome.failure))
      const full = context.values.get(GrpcMemory.takeResponse)(ResponseSize.of(outcome.success))
      if (full === undefined) resolve(outcome.success)
      else reject(connectError(exhausted(full)))
    }
    const cancel = gateway.infer(wire, deadline, reply, context.values.get(GrpcMemory.memory))
    // Connect aborts the signal at the end of every call; then there is nothing left to cancel.
    const { signal } = context
    const onAbort = () => {
      const error = ConnectError.from(signal.reason, Code.Canceled)
      // A deadline also aborts. The scheduler has it too, and its answer is the one to give.
      if (error.code === Code.DeadlineExceeded) return
      cancel()
      reject(error)
    }
    if (signal.aborted) onAbort()
    else signal.addEventListener("abort", onAbort, { once: true })
  })

const orThrow = <A>(result: Result.Result<A, InferenceError>): A => {
  if (Result.isFailure(result)) throw toError(result.failure)
  return result.success
}

/** To its end, also where the caller leaves. */
const done = async (control: Effect.Effect<void, InferenceError>): Promise<Record<never, never>> => {
  orThrow(await Effect.runPromise(Effect.result(control)))
  return {}
}

const toError = (error: InferenceError): ConnectError => connectError(fromError(error))

const tensorMetadata = ({ name, datatype, shape }: TensorMetadata) => ({ name, datatype, shape: shape.map(BigInt) })

const regionStatus = ({ name, key, offset, byteSize }: Region) => ({
  name,
  key,
  offset: BigInt(offset),
  byteSize: BigInt(byteSize),
})
