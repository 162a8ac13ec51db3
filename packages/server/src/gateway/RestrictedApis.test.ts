/** Restricted APIs over both ports (C29): refused calls, and invalid configurations. */
import { create, type DescMethod, toBinary } from "@bufbuild/protobuf"
import { assert, describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { Health } from "@nereid/protocol/health"
import { Model, Tensor } from "@nereid/core"
import { clients, frame, modelInfer, rawCall, rawSession } from "../grpc/GrpcServer.fixture.ts"
import * as RestrictedApis from "./RestrictedApis.ts"
import * as Server from "../Server.ts"

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { X: Tensor.scalar("INT32") },
}) {}

const echo = Model.each(Echo, ({ X }) => Effect.succeed({ X }))

const serve = Effect.fnUntraced(function* (options: Server.ServerOptions) {
  const free = { host: "127.0.0.1", port: 0 }
  const layer = Server.layer([Echo], { http: free, grpc: free, metrics: false, ...options })
  const { http, grpc } = yield* Effect.provide(Server.Server, yield* Layer.build(Layer.provide(layer, echo)))
  assert(http !== undefined && grpc !== undefined)
  const authority = `http://127.0.0.1:${grpc.port}`
  return { http: http.port, authority, session: yield* rawSession({ authority }) }
})

const request = (port: number, { path, body }: Route, headers: Record<string, string> = {}) =>
  Effect.promise(async () => {
    const init = body === undefined ? {} : { method: "POST", body }
    const url = `http://127.0.0.1:${port}${path}`
    const response = await fetch(url, { ...init, headers: { connection: "close", ...headers } })
    return { status: response.status, text: await response.text() }
  })

interface Route {
  readonly api: RestrictedApis.Api
  readonly path: string
  /** Undefined for GET. */
  readonly body?: string
  /** Status of a permitted call. Default 200. */
  readonly status?: number
}

const routes: ReadonlyArray<Route> = [
  { api: "health", path: "/v2/health/live" },
  { api: "health", path: "/v2/health/ready" },
  { api: "health", path: "/v2/models/echo/ready" },
  { api: "metadata", path: "/v2" },
  { api: "metadata", path: "/v2/models/echo" },
  {
    api: "inference",
    path: "/v2/models/echo/infer",
    body: '{"inputs":[{"name":"X","datatype":"INT32","shape":[1],"data":[3]}]}',
  },
  { api: "inference", path: "/v2/models/echo/versions/1/generate", body: '{"X":3}' },
  { api: "inference", path: "/v2/models/echo/generate_stream", body: '{"X":3}' },
  { api: "model-config", path: "/v2/models/echo/config" },
  { api: "model-repository", path: "/v2/repository/index", body: "" },
  { api: "model-repository", path: "/v2/repository/models/echo/load", body: "", status: 503 },
  { api: "statistics", path: "/v2/models/stats" },
  { api: "statistics", path: "/v2/models/echo/stats" },
  { api: "shared-memory", path: "/v2/systemsharedmemory/status" },
  { api: "shared-memory", path: "/v2/systemsharedmemory/region/r/register", body: "{}", status: 501 },
  { api: "shared-memory", path: "/v2/systemsharedmemory/unregister", body: "", status: 501 },
  { api: "shared-memory", path: "/v2/cudasharedmemory/status" },
  { api: "shared-memory", path: "/v2/cudasharedmemory/region/r/register", body: "{}", status: 400 },
  { api: "shared-memory", path: "/v2/cudasharedmemory/unregister", body: "" },
  { api: "trace", path: "/v2/trace/setting" },
  { api: "trace", path: "/v2/models/echo/trace/setting", body: "{}" },
  { api: "logging", path: "/v2/logging" },
  { api: "logging", path: "/v2/logging", body: "{}" },
]

it.live.each(RestrictedApis.apis)("HTTP: every route of %s requires its secret, the others none", (api) =>
  Effect.gen(function* () {
    const restriction = { apis: [api], key: "Admin-Key", value: "secret" }
    const { http } = yield* serve({ restrictedApis: { http: [restriction] } })
    const refused = { status: 403, text: `{"error":"This API is restricted, expecting header 'Admin-Key'"}` }
    for (const route of routes) {
      const { status = 200 } = route
      if (route.api === api) {
        expect(yield* request(http, route), route.path).toEqual(refused)
        expect(yield* request(http, route, { "admin-key": "secret2" }), route.path).toEqual(refused)
        expect(yield* request(http, route, { "admin-key": "" }), route.path).toEqual(refused)
        expect(yield* request(http, route, { "admin-key": "secret" }), route.path).toMatchObject({ status })
      } else expect(yield* request(http, route), route.path).toMatchObject({ status })
    }
  }),
)

const call = (session: Parameters<typeof rawCall>[0], method: DescMethod, headers: Record<string, string> = {}) => {
  const message =
    method.name === modelInfer.name
      ? toBinary(
          modelInfer.input,
          create(modelInfer.input, {
            modelName: "echo",
            inputs: [{ name: "X", datatype: "INT32", shape: [1n], contents: { intContents: [3] } }],
          }),
        )
      : new Uint8Array()
  const path = `/${method.parent.typeName}/${method.name}`
  return Effect.map(
    rawCall(session, { chunks: [frame(message)], headers: { ":path": path, ...headers } }),
    ({ status, message, tag }) => ({ status, message, tag }),
  )
}

const { method } = GRPCInferenceService

const rpcs: ReadonlyArray<readonly [RestrictedApis.Api, DescMethod]> = [
  ["health", method.serverLive],
  ["health", method.serverReady],
  ["health", method.modelReady],
  ["health", Health.method.check],
  ["metadata", method.serverMetadata],
  ["metadata", method.modelMetadata],
  ["inference", method.modelInfer],
  ["inference", method.modelStreamInfer],
  ["shared-memory", method.systemSharedMemoryStatus],
  ["shared-memory", method.cudaSharedMemoryRegister],
  ["model-config", method.modelConfig],
  ["model-repository", method.repositoryIndex],
  ["model-repository", method.repositoryModelLoad],
  ["statistics", method.modelStatistics],
  ["trace", method.traceSetting],
  ["logging", method.logSettings],
]

describe.each([true, false])("gRPC, with its own path for unary calls: %s", (fastInference) => {
  it.live("every RPC of a restricted API requires its secret, the others none", () =>
    Effect.gen(function* () {
      for (const [api, rpc] of rpcs) {
        const restriction = { apis: [api], key: "admin", value: "secret" }
        const { session } = yield* serve({ fastInference, restrictedApis: { grpc: [restriction] } })
        const refused = {
          status: "14",
          message: "This protocol is restricted, expecting header 'triton-grpc-protocol-admin'",
          tag: "Unavailable",
        }
        expect(yield* call(session, rpc), rpc.name).toEqual(refused)
        expect(yield* call(session, rpc, { "triton-grpc-protocol-admin": "Secret" }), rpc.name).toEqual(refused)
        const allowed = yield* call(session, rpc, { "triton-grpc-protocol-admin": "secret" })
        expect(allowed.message ?? "", rpc.name).not.toContain("restricted")
        for (const [other, open] of rpcs) {
          if (other === api) continue
          const response = yield* call(session, open)
          expect(response.message ?? "", `${open.name} with ${api} restricted`).not.toContain("restricted")
        }
      }
    }),
  )

  it.live("inference answers to its secret", () =>
    Effect.gen(function* () {
      const restriction = { apis: ["inference"], key: "Admin", value: "secret" } as const
      const { session } = yield* serve({ fastInference, restrictedApis: { grpc: [restriction] } })
      expect(yield* call(session, modelInfer)).toMatchObject({ status: "14" })
      expect(yield* call(session, modelInfer, { "triton-grpc-protocol-admin": "secret" })).toMatchObject({
        status: "0",
      })
    }),
  )
})

it.live.each(["gRPC-Web", "Connect", "gRPC with gzip"] as const)("reports %s like gRPC", (client) =>
  Effect.gen(function* () {
    const restriction = { apis: ["inference"], key: "admin", value: "secret" } as const
    const infer = yield* clients[client](yield* serve({ restrictedApis: { grpc: [restriction] } }))
    expect(yield* infer(modelInfer, {})).toMatchObject({ code: 14, tag: "Unavailable" })
  }),
)

const unknown = { apis: JSON.parse('["x"]'), key: "key", value: "value" }
const group = (...apis: ReadonlyArray<RestrictedApis.Api>) => ({ apis, key: "key", value: "value" })

it.each<readonly [ReadonlyArray<RestrictedApis.Restriction>, string]>([
  [[group("health"), group("metadata", "health")], "'health' can not be specified in multiple config groups"],
  [[{ ...group("health"), key: "a b" }], "config requires a header name, got 'a b'"],
  [[{ ...group("health"), key: "" }], "config requires a header name, got ''"],
  [[{ ...group("health"), value: "" }], "config requires a value for header 'key', got none"],
])("refuses the configuration %j", (restrictions, expected) => {
  for (const [port, noun] of [
    ["http", "api"],
    ["grpc", "protocol"],
  ] as const) {
    const { message } = Result.getOrThrow(Result.flip(RestrictedApis.make(restrictions, port)))
    expect(message).toBe(`restricted ${noun} ${expected}`)
  }
})

it.live.each([
  ["http", "api"],
  ["grpc", "protocol"],
] as const)("an unknown API of %s fails the start", ([port, noun]) =>
  Effect.gen(function* () {
    const error = yield* Effect.flip(serve({ restrictedApis: { [port]: [unknown] } }))
    expect(error).toMatchObject({ _tag: "ServeError", message: `unknown restricted ${noun} 'x'` })
  }),
)

it("a restriction of the command line: APIs, key, and a value that may hold anything", () => {
  expect(Result.getOrThrow(RestrictedApis.parse("health,model-config:key=a=b:c", "http"))).toEqual({
    apis: ["health", "model-config"],
    key: "key",
    value: "a=b:c",
  })
  const problem = (text: string) => Result.getOrThrow(Result.flip(RestrictedApis.parse(text, "grpc"))).message
  expect(problem("health,x:key=value")).toBe("unknown restricted protocol 'x'")
  for (const text of ["", "health"]) expect(problem(text)).toContain(`got '${text}'`)
  expect(problem("health:secret")).toContain("got 'health:…'")
  expect(problem("health;key=se=cret")).toContain("got 'health;key=…'")
})
