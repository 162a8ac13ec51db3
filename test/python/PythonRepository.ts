/**
 * A server over a repository of models in Python, whose files are in test/python/models, and clients over HTTP and
 * gRPC. Used where there is a Python with numpy.
 */
import type { MessageInitShape, MessageShape } from "@bufbuild/protobuf"
import type { ModelInferRequestSchema, ModelStreamInferResponseSchema } from "@nereid/protocol/grpc_service"
import { Repository } from "@nereid/repository"
import { Server } from "@nereid/server"
import { Effect, Exit, Scope } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import * as Grpc from "../../packages/server/src/grpc/GrpcClient.fixture.ts"
import { repository, type RepositoryFixture } from "../fixtures/repository.ts"
import { python } from "../fixtures/python.ts"
import * as GrpcClient from "./GrpcClient.ts"
import * as HttpClient from "./HttpClient.ts"
import type { PythonClient, Transport } from "./PythonClient.ts"

export { failureOf } from "../../packages/server/src/grpc/GrpcClient.fixture.ts"

// The servers of the tests find it so.
if (python !== undefined) process.env["NEREID_PYTHON"] = python

/** Input IN and output OUT, of one text or of numbers. */
export const pairOf = (kind: string, dims = "1"): string =>
  `input { name: "IN" data_type: TYPE_${kind} dims: ${dims} } output { name: "OUT" data_type: TYPE_${kind} dims: ${dims} }`

export const texts = pairOf("STRING")

export const decoupled = "model_transaction_policy { decoupled: true }"

/** An ensemble X → Y that adds X to itself with add_sub. */
export const doubling = `platform: "ensemble" max_batch_size: 8 input { name: "X" data_type: TYPE_FP32 dims: 4 } output { name: "Y" data_type: TYPE_FP32 dims: 4 }
  ensemble_scheduling { step { model_name: "add_sub" model_version: -1
    input_map { key: "A" value: "X" } input_map { key: "B" value: "X" } output_map { key: "SUM" value: "Y" } } }`

/** A parameter of the configuration. */
export const parameter = (name: string, value: string | number): string =>
  `parameters { key: "${name}" value { string_value: "${value}" } }`

const anywhere = { host: "127.0.0.1", port: 0 } as const

const models = join(import.meta.dirname, "models")

/** Code of a model of the tests. */
export const code = (name: string): string => readFileSync(join(models, `${name}.py`), "utf8")

/** A model of a repository: its code, and its configuration. */
export interface TestModel {
  /** Name of a file in test/python/models. Default: the name of the model. */
  readonly file?: string
  readonly config?: string
}

export const scoped = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> => {
  const scope = Scope.makeUnsafe()
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return Effect.runPromise(Scope.provide(effect, scope))
}

/** Writes the models into a new repository. */
export const write = async (given: Readonly<Record<string, TestModel>>): Promise<RepositoryFixture> => {
  const fixture = await scoped(repository)
  for (const [name, model] of Object.entries(given)) add(fixture, name, model)
  return fixture
}

export const add = (fixture: RepositoryFixture, name: string, { file = name, config = "" }: TestModel): void => {
  fixture.write(`${name}/1/model.py`, code(file))
  fixture.write(`${name}/config.pbtxt`, `backend: "python"\n${config}`)
}

/** A tensor as JSON. */
export interface JsonTensor {
  readonly name: string
  readonly datatype: string
  readonly shape: ReadonlyArray<number>
  readonly data: ReadonlyArray<unknown>
  readonly parameters?: object
}

export interface JsonResponse {
  readonly error?: string
  readonly outputs?: ReadonlyArray<JsonTensor>
  readonly parameters?: Readonly<Record<string, unknown>>
}

export type InferRequest = MessageInitShape<typeof ModelInferRequestSchema>
export type StreamResponse = MessageShape<typeof ModelStreamInferResponseSchema>

interface StartOptions extends Partial<Repository.Options> {
  /** Units of resources of the rate limiter. Default: no limiter. */
  readonly resources?: Readonly<Record<string, number>>
  /** Limits of the server. */
  readonly server?: Pick<Server.ServerOptions, "drainTimeout" | "maxInFlightSize">
}

/** Starts a server over the fixture, with the Python of the tests. A test that ends stops it. */
export const serve = async (fixture: RepositoryFixture, options: StartOptions = {}) => {
  const served = await start(fixture, options)
  onTestFinished(served.stop)
  return served
}

/** Starts a server that its caller stops. */
export const start = async (fixture: RepositoryFixture, options: StartOptions = {}) => {
  const logFile = join(fixture.path, ".log")
  const { resources, server: limits, ...given } = options
  const layer = Repository.layer({ directories: [fixture.path], exitOnError: false, ...given })
  const server = await Server.start([], layer, {
    http: anywhere,
    grpc: anywhere,
    metrics: anywhere,
    ...(resources !== undefined && {
      rateLimit: { resources: Object.entries(resources).map(([name, count]) => ({ name, count })) },
    }),
    allowClientSharedMemory: true,
    logging: { file: logFile, verboseLevel: 1, escapeMessages: false },
    ...limits,
  })
  let isStopped = false
  const stop = async () => {
    if (isStopped) return
    isStopped = true
    close()
    await server.stop()
  }
  const address = `http://127.0.0.1:${server.http.port}`
  const request = async (path: string, body?: unknown) => {
    const response = await fetch(`${address}/v2/${path}`, {
      ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, body: text === "" ? {} : JSON.parse(text) }
  }
  const infer = async (model: string, inputs: ReadonlyArray<JsonTensor>, more: object = {}) => {
    const { status, body } = await request(`models/${model}/infer`, { inputs, ...more })
    return { status, ...(body as JsonResponse) }
  }
  const { rpc, close } = Grpc.connect(`http://127.0.0.1:${server.grpc.port}`)
  const clients: Readonly<Record<Transport, PythonClient>> = {
    HTTP: HttpClient.make(address),
    gRPC: GrpcClient.make(rpc),
  }
  return {
    server,
    clients,
    fixture,
    address,
    stop,
    request,
    infer,
    rpc,
    load: (model: string, parameters: object = {}) => request(`repository/models/${model}/load`, { parameters }),
    unload: (model: string) => request(`repository/models/${model}/unload`, {}),
    isReady: async (model: string) => (await fetch(`${address}/v2/models/${model}/ready`)).status === 200,
    index: async (): Promise<ReadonlyArray<{ name: string; state?: string; reason?: string }>> =>
      (await request("repository/index", {})).body,
    config: async (model: string) => (await request(`models/${model}/config`)).body,
    statistics: async (model: string) => (await request(`models/${model}/stats`)).body.model_stats[0],
    metrics: async () => (await fetch(`http://127.0.0.1:${server.metrics.port}/metrics`)).text(),
    log: () => readFileSync(logFile, "utf8"),
    /** All responses of a stream with these requests. */
    stream: async (...requests: ReadonlyArray<InferRequest>): Promise<ReadonlyArray<StreamResponse>> => {
      const responses: Array<StreamResponse> = []
      for await (const response of rpc.modelStreamInfer(sent(requests))) responses.push(response)
      return responses
    },
  }
}

export type Served = Awaited<ReturnType<typeof start>>

const sent = async function* (requests: ReadonlyArray<InferRequest>) {
  yield* requests
}

export const text = (name: string, ...data: ReadonlyArray<string>): JsonTensor => ({
  name,
  datatype: "BYTES",
  shape: [data.length],
  data,
})

export const numbers = (
  name: string,
  datatype: string,
  shape: ReadonlyArray<number>,
  data: ReadonlyArray<number | boolean>,
): JsonTensor => ({ name, datatype, shape, data })
