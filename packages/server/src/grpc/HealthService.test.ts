/** `grpc.health.v1.Health` over real sockets: the status now, and its changes. */
import { fromBinary, toBinary } from "@bufbuild/protobuf"
import { createClient } from "@connectrpc/connect"
import { createGrpcWebTransport } from "@connectrpc/connect-node"
import { describe, expect, it } from "@effect/vitest"
import * as grpc from "@grpc/grpc-js"
import { create } from "@bufbuild/protobuf"
import { Effect, Queue } from "effect"
import { noRepository } from "@nereid/core/internal/lifecycle/ModelRepository"
import {
  Health,
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus as ServingStatus,
  HealthCheckResponseSchema,
} from "@nereid/protocol/health"
import { clients, serve, stoppable } from "./GrpcServer.fixture.ts"

/** The statuses of a Watch, by name, and the code of its end. */
const watch = Effect.fnUntraced(function* (port: number, service: string) {
  const seen = yield* Queue.unbounded<string | number>()
  const client = yield* Effect.acquireRelease(
    Effect.sync(() => new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure())),
    (client) => Effect.sync(() => client.close()),
  )
  const stream = client.makeServerStreamRequest(
    `/${Health.typeName}/Watch`,
    (name: string) =>
      Buffer.from(toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service: name }))),
    (bytes) => fromBinary(HealthCheckResponseSchema, new Uint8Array(bytes)).status,
    service,
  )
  stream.on("data", (status: ServingStatus) => Queue.offerUnsafe(seen, nameOf(status)))
  stream.on("error", () => {})
  stream.on("status", ({ code }) => Queue.offerUnsafe(seen, code))
  return { next: Queue.take(seen), cancel: () => stream.cancel() }
})

const nameOf = (status: ServingStatus): string =>
  Object.entries(ServingStatus).find(([, value]) => value === status)?.[0] ?? String(status)

const check = Effect.fnUntraced(function* (server: { readonly port: number; readonly authority: string }) {
  const call = yield* clients["grpc-js"](server)
  return (service: string) => call(Health.method.check, { service })
})

describe("Watch", () => {
  it.live.each(["", "inference.GRPCInferenceService"])("'%s' sends the status, and each change", (service) =>
    Effect.gen(function* () {
      const { port, gateway } = yield* serve({}, { isStarting: true })
      const { next } = yield* watch(port, service)
      expect(yield* next).toBe("NOT_SERVING")
      gateway.started()
      expect(yield* next).toBe("SERVING")
      gateway.beginDrain()
      expect(yield* next).toBe("NOT_SERVING")
      expect(yield* next).toBe(grpc.status.UNAVAILABLE)
    }),
  )

  it.live("sees a change without an event, such as a model that is no longer ready", () =>
    Effect.gen(function* () {
      let ready = true
      const { port } = yield* serve({}, { repository: { ...noRepository, isReady: () => ready } })
      const { next } = yield* watch(port, "")
      expect(yield* next).toBe("SERVING")
      ready = false
      expect(yield* next).toBe("NOT_SERVING")
      ready = true
      expect(yield* next).toBe("SERVING")
    }),
  )

  it.live("an unknown service is SERVICE_UNKNOWN, and the call stays open until the stop", () =>
    Effect.gen(function* () {
      const { port, gateway } = yield* serve()
      const unknown = yield* watch(port, "none")
      expect(yield* unknown.next).toBe("SERVICE_UNKNOWN")
      const known = yield* watch(port, "")
      expect(yield* known.next).toBe("SERVING")
      gateway.beginDrain()
      expect(yield* unknown.next).toBe(grpc.status.UNAVAILABLE)
      const late = yield* watch(port, "")
      expect(yield* late.next).toBe("NOT_SERVING")
      expect(yield* late.next).toBe(grpc.status.UNAVAILABLE)
    }),
  )

  it.live("a stop of the server waits for no client that watches", () =>
    Effect.gen(function* () {
      const { server, stop } = yield* stoppable({ stopTimeoutMillis: 60_000 })
      const { next } = yield* watch(server.port, "")
      expect(yield* next).toBe("SERVING")
      server.gateway.beginDrain()
      yield* stop
      expect(yield* next).toBe("NOT_SERVING")
    }),
  )

  it.live("1,000 calls at a time; one that is cancelled makes room", () =>
    Effect.gen(function* () {
      const { port } = yield* serve()
      const first = yield* watch(port, "")
      yield* first.next
      const others = yield* Effect.forEach(
        Array.from({ length: 999 }),
        () => Effect.tap(watch(port, ""), ({ next }) => next),
        { concurrency: 50 },
      )
      const refused = yield* watch(port, "")
      expect(yield* refused.next).toBe(grpc.status.RESOURCE_EXHAUSTED)
      others[0]?.cancel()
      const status = Effect.flatMap(watch(port, ""), ({ next }) => next)
      expect(yield* Effect.repeat(status, { while: (answer) => answer !== "SERVING" })).toBe("SERVING")
    }),
  )

  it.live("over gRPC-Web, on HTTP/1.1", () =>
    Effect.gen(function* () {
      const { authority } = yield* serve()
      const client = createClient(Health, createGrpcWebTransport({ baseUrl: authority, httpVersion: "1.1" }))
      const first = yield* Effect.promise(async () => {
        for await (const { status } of client.watch({})) return status
        return undefined
      })
      expect(first).toBe(ServingStatus.SERVING)
    }),
  )

  it.live("is restricted as Check is", () =>
    Effect.gen(function* () {
      const { port } = yield* serve({ restrictedApis: [{ apis: ["health"], key: "key", value: "secret" }] })
      const { next } = yield* watch(port, "")
      expect(yield* next).toBe(grpc.status.UNAVAILABLE)
    }),
  )
})

describe("Check", () => {
  it.live("an unknown service is NOT_FOUND", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      const ask = yield* check(server)
      expect(yield* ask("")).toMatchObject({ response: { status: ServingStatus.SERVING } })
      expect(yield* ask("none")).toMatchObject({ code: grpc.status.NOT_FOUND })
    }),
  )
})
