/**
 * Client of a server's repository, over HTTP or over gRPC. Both have the same calls and results, so that one test
 * covers both. An error is a string, `InvalidRequest: message`; the client checks its status.
 */
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf"
import { toJson } from "@bufbuild/protobuf"
import { tagHeader } from "@nereid/core/internal/wire/ErrorHeaders"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { ModelConfigSchema } from "@nereid/protocol/model_config"
import { Effect, type Scope } from "effect"
import { clients } from "../packages/server/src/grpc/GrpcServer.fixture.ts"
import { codes } from "./conformance/Codes.ts"
import type { Transport } from "./conformance/RepositoryLines.ts"

export interface Entry {
  readonly name: string
  readonly version?: string
  readonly state?: string
  readonly reason?: string
}

/** Of a load: its configuration as JSON, and its files. */
export interface Overrides {
  readonly config?: object
  readonly files?: { readonly [path: string]: Uint8Array }
}

export interface RepositoryClient {
  readonly index: (readyOnly?: boolean) => Promise<ReadonlyArray<Entry>>
  /** Loads a model; returns the error, or undefined if it succeeds. */
  readonly load: (name: string, overrides?: Overrides) => Promise<string | undefined>
  readonly unload: (name: string, dependents?: boolean) => Promise<string | undefined>
  /** With the names of config.pbtxt; 64-bit integers may be texts. */
  readonly config: (name: string, version?: string) => Promise<unknown>
  readonly isLive: () => Promise<boolean>
  readonly isReady: () => Promise<boolean>
  readonly isModelReady: (name: string, version?: string) => Promise<boolean | string>
  /** The output of a model of one FP32 input X and output Y, or the error. */
  readonly infer: (name: string, x?: number, options?: { readonly signal?: AbortSignal }) => Promise<number | string>
  /** Requests that the model has answered. */
  readonly successes: (name: string) => Promise<number>
}

interface Ports {
  readonly http: number
  readonly grpc: number
}

export const make: {
  readonly [T in Transport]: (ports: Ports) => Effect.Effect<RepositoryClient, never, Scope.Scope>
} = {
  HTTP: ({ http }) => Effect.succeed(overHttp(http)),
  gRPC: ({ grpc }) => Effect.map(clients["grpc-js"]({ port: grpc }), overGrpc),
}

const refused = (transport: "http" | "grpc", code: number, tag: string | undefined | null, message: string): string => {
  const status = Object.entries(codes).find(([name]) => name === tag)?.[1][transport]
  return status === code ? `${tag}: ${message}` : `${transport} ${code} of ${tag}: ${message}`
}

const overHttp = (port: number): RepositoryClient => {
  const request = async (method: "GET" | "POST", path: string, body: unknown = {}, signal?: AbortSignal) => {
    const response = await fetch(`http://127.0.0.1:${port}/v2/${path}`, {
      method,
      ...(method === "POST" ? { body: JSON.stringify(body) } : {}),
      ...(signal === undefined ? {} : { signal }),
    })
    const text = await response.text()
    const json = text === "" ? undefined : JSON.parse(text)
    const { status } = response
    const error =
      status === 200 ? undefined : refused("http", status, response.headers.get(tagHeader), json?.error ?? "")
    return { status, json, error }
  }
  const at = (name: string, version?: string) =>
    version === undefined ? `models/${name}` : `models/${name}/versions/${version}`
  return {
    index: async (ready = false) => {
      const { json, error } = await request("POST", "repository/index", { ready })
      if (error !== undefined) throw new Error(error)
      return json
    },
    load: async (name, { config, files = {} } = {}) => {
      const contents = Object.entries(files).map(([path, bytes]) => [
        `file:${path}`,
        Buffer.from(bytes).toString("base64"),
      ])
      const parameters = { ...(config && { config: JSON.stringify(config) }), ...Object.fromEntries(contents) }
      return (await request("POST", `repository/models/${name}/load`, { parameters })).error
    },
    unload: async (name, unload_dependents = false) =>
      (await request("POST", `repository/models/${name}/unload`, { parameters: { unload_dependents } })).error,
    config: async (name, version) => {
      const { json, error } = await request("GET", `${at(name, version)}/config`)
      return error ?? json
    },
    isLive: async () => (await request("GET", "health/live")).status === 200,
    isReady: async () => (await request("GET", "health/ready")).status === 200,
    isModelReady: async (name, version) => {
      const { status, json, error } = await request("GET", `${at(name, version)}/ready`)
      return status === 400 && json?.error === "Model version not ready" ? false : (error ?? true)
    },
    infer: async (name, x = 0, { signal } = {}) => {
      const inputs = [{ name: "X", datatype: "FP32", shape: [1, 1], data: [x] }]
      const { json, error } = await request("POST", `${at(name)}/infer`, { inputs }, signal)
      return error ?? json.outputs[0].data[0]
    },
    successes: async (name) =>
      (await request("GET", `${at(name)}/stats`)).json.model_stats[0].inference_stats.success.count,
  }
}

type Call = Effect.Success<ReturnType<(typeof clients)["grpc-js"]>>

const { method } = GRPCInferenceService

const overGrpc = (call: Call): RepositoryClient => {
  const send = async <I extends DescMessage, O extends DescMessage, A>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    read: (response: MessageShape<O>) => A,
    signal?: AbortSignal,
  ): Promise<A | string> => {
    const outcome = await Effect.runPromise(call(method, request, signal === undefined ? {} : { signal }))
    if ("response" in outcome) return read(outcome.response)
    return refused("grpc", outcome.code, outcome.tag, outcome.message)
  }
  const orThrow = async <A>(response: Promise<A | string>): Promise<A> => {
    const found = await response
    if (typeof found === "string") throw new Error(found)
    return found
  }
  const done = () => undefined
  return {
    index: (ready = false) =>
      orThrow(
        send(method.repositoryIndex, { ready }, ({ models }) =>
          // As HTTP has it, where a model that was never loaded has no more than its name.
          models.map(({ name, version, state, reason }) =>
            state === "" ? { name } : { name, version, state, reason },
          ),
        ),
      ),
    load: (modelName, { config, files = {} } = {}) => {
      const parameters = Object.fromEntries([
        ...(config ? [["config", { parameterChoice: text(JSON.stringify(config)) }] as const] : []),
        ...Object.entries(files).map(([path, content]) => {
          const value = new Uint8Array(content)
          return [`file:${path}`, { parameterChoice: { case: "bytesParam" as const, value } }] as const
        }),
      ])
      return send(method.repositoryModelLoad, { modelName, parameters }, done)
    },
    unload: (modelName, value = false) => {
      const parameters = { unload_dependents: { parameterChoice: { case: "boolParam" as const, value } } }
      return send(method.repositoryModelUnload, { modelName, parameters }, done)
    },
    config: (name, version = "") =>
      send(
        method.modelConfig,
        { name, version },
        ({ config }) =>
          config && toJson(ModelConfigSchema, config, { useProtoFieldName: true, alwaysEmitImplicit: true }),
      ),
    isLive: () => orThrow(send(method.serverLive, {}, ({ live }) => live)),
    isReady: () => orThrow(send(method.serverReady, {}, ({ ready }) => ready)),
    isModelReady: (name, version = "") => send(method.modelReady, { name, version }, ({ ready }) => ready),
    infer: (modelName, x = 0, { signal } = {}) => {
      const inputs = [{ name: "X", datatype: "FP32", shape: [1n, 1n], contents: { fp32Contents: [x] } }]
      const read = ({ rawOutputContents: [bytes] }: { readonly rawOutputContents: ReadonlyArray<Uint8Array> }) =>
        Buffer.from(bytes ?? []).readFloatLE()
      return send(method.modelInfer, { modelName, inputs }, read, signal)
    },
    successes: (name) =>
      orThrow(
        send(method.modelStatistics, { name }, ({ modelStats }) =>
          Number(modelStats[0]?.inferenceStats?.success?.count),
        ),
      ),
  }
}

const text = (value: string) => ({ case: "stringParam" as const, value })
