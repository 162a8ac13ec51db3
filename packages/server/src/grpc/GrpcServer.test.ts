/** Every RPC over a real socket, from every client, with and without the path before Connect. */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Queue } from "effect"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { Health, HealthCheckResponse_ServingStatus as ServingStatus } from "@nereid/protocol/health"
import * as GrpcServer from "./GrpcServer.ts"
import {
  addSub,
  addSubResponse,
  clients,
  closed,
  inferFrame,
  modelInfer,
  oneByte,
  rawCall,
  rawSession,
  seen,
  serve,
  stoppable,
} from "./GrpcServer.fixture.ts"
import { maxMessageLength } from "@nereid/core/internal/grpc/GrpcStatus"

const { method } = GRPCInferenceService

const unknownModel = { code: 5, message: "Request for unknown model: 'nobody' is not found", tag: "ModelNotFound" }

type InferCase = readonly [name: string, request: Parameters<typeof addSub>[0], expected: object]

const inferCases: ReadonlyArray<InferCase> = [
  [
    "answers with raw tensors",
    addSub(),
    { response: { modelName: "addsub", modelVersion: "1", id: "1", rawOutputContents: addSubResponse } },
  ],
  [
    "answers only the outputs that were asked for",
    addSub({ outputs: [{ name: "DIFFERENCE" }] }),
    { response: { outputs: [{ name: "DIFFERENCE", datatype: "INT32", shape: [1n, 4n] }] } },
  ],
  ["refuses an unknown model", addSub({ modelName: "nobody" }), unknownModel],
  [
    "refuses a version that is no number",
    addSub({ modelVersion: "x" }),
    { code: 3, tag: "InvalidRequest", message: expect.stringContaining("failed to get model version") },
  ],
  [
    "refuses an input without data",
    addSub({ rawInputContents: [] }),
    {
      code: 3,
      tag: "InvalidRequest",
      message: "unable to find data for input tensor 'A' for model 'addsub' in request.",
    },
  ],
  [
    "refuses a tensor whose bytes are not its shape's",
    addSub({ rawInputContents: [new Uint8Array(3), new Uint8Array(16)] }),
    { code: 3, message: expect.stringContaining("Expected 16, got 3") },
  ],
  [
    "passes on what a handler fails with",
    oneByte("faulty"),
    { code: 13, tag: "ExecutionFailed", message: expect.stringContaining("the handler's own text: 100 % – naïve") },
  ],
  [
    "shortens a text that no header would hold",
    addSub({ modelName: "ü".repeat(100_000) }),
    {
      code: 5,
      tag: "ModelNotFound",
      message: expect.stringMatching(new RegExp(`^Request.{${maxMessageLength - 7}}…$`)),
    },
  ],
  [
    "answers a defect as an internal error",
    addSub({ id: "defect" }),
    { code: 13, tag: "ExecutionFailed", message: expect.stringContaining("Internal server error") },
  ],
  [
    "echoes 3 MiB",
    oneByte("echo", {
      inputs: [{ name: "X", datatype: "UINT8", shape: [BigInt(3 << 20)] }],
      rawInputContents: [new Uint8Array(3 << 20).fill(9)],
    }),
    { response: { outputs: [{ shape: [BigInt(3 << 20)] }] } },
  ],
]

describe.each([true, false])("fastInference: %s", (fastInference) => {
  describe.each(Object.entries(clients))("%s", (_, makeCall) => {
    it.live.each(inferCases)("ModelInfer %s", ([, request, expected]) =>
      Effect.gen(function* () {
        const call = yield* makeCall(yield* serve({ fastInference }))
        expect(yield* call(modelInfer, request ?? {})).toMatchObject(expected)
      }),
    )

    it.live("a caller that cancels takes its request out of the queue", () =>
      Effect.gen(function* () {
        const server = yield* serve({ fastInference })
        const call = yield* makeCall(server)
        const first = yield* Effect.forkChild(call(modelInfer, oneByte("gate")))
        yield* Queue.take(server.started)
        expect(yield* Queue.take(server.events)).toBe("asked")

        const controller = new AbortController()
        const second = yield* Effect.forkChild(call(modelInfer, oneByte("gate"), { signal: controller.signal }))
        expect(yield* Queue.take(server.events)).toBe("asked")
        expect(server.gate.life.pending()).toBe(1)
        // The queue holds one.
        expect(yield* call(modelInfer, oneByte("gate"))).toMatchObject({ code: 14, tag: "QueueFull" })
        expect(yield* Queue.take(server.events)).toBe("asked")

        controller.abort()
        expect(yield* Fiber.join(second)).toMatchObject({ code: 1 })
        expect(yield* Queue.take(server.events)).toBe("cancelled")
        expect(server.gate.life.pending()).toBe(0)
        expect(server.gate.description.statistics.failures.CANCELED).toBe(1)

        yield* Deferred.succeed(server.open, undefined)
        expect(yield* Fiber.join(first)).toMatchObject({ response: { modelName: "gate" } })
      }),
    )
  })

  it.live("a deadline that passes in the queue is answered", () =>
    Effect.gen(function* () {
      const server = yield* serve({ fastInference })
      const session = yield* rawSession(server)
      const chunks = [inferFrame(oneByte("gate"))]
      const first = yield* Effect.forkChild(rawCall(session, { chunks }))
      yield* Queue.take(server.started)
      const response = yield* rawCall(session, { chunks, headers: { "grpc-timeout": "50m" } })
      expect(response).toMatchObject({ status: "4", tag: "DeadlineExceeded" })
      expect(response.message).toContain("Deadline Exceeded")
      expect(server.gate.life.pending()).toBe(0)
      expect(server.gate.description.statistics.failures.REJECTED).toBe(1)
      yield* Deferred.succeed(server.open, undefined)
      expect(yield* Fiber.join(first)).toMatchObject({ status: "0" })
    }),
  )

  it.live("a stop answers what is in flight and leaves no connection", () =>
    Effect.gen(function* () {
      const { server, stop } = yield* stoppable({ fastInference })
      const idle = yield* rawSession(server)
      const session = yield* rawSession(server)
      const inFlight = yield* Effect.forkChild(rawCall(session, { chunks: [inferFrame(oneByte("gate"))] }))
      yield* Queue.take(server.started)
      const goaway = yield* Deferred.make<void>()
      session.on("goaway", () => Deferred.doneUnsafe(goaway, Effect.void))
      const stopping = yield* Effect.forkChild(stop)
      yield* Deferred.await(goaway)
      yield* Deferred.succeed(server.open, undefined)
      expect(yield* Fiber.join(inFlight)).toMatchObject({ status: "0" })
      yield* Fiber.join(stopping)
      yield* closed(idle)
      yield* closed(session)
    }),
  )

  it.live("a stop cuts off a caller that never ends its call", () =>
    Effect.gen(function* () {
      const { server, stop } = yield* stoppable({ fastInference, stopTimeoutMillis: 50 })
      const session = yield* rawSession(server)
      const call = yield* Effect.forkChild(rawCall(session, { chunks: [inferFrame(oneByte("gate"))], last: "nothing" }))
      yield* seen(session)
      yield* stop
      yield* Fiber.join(call)
      yield* closed(session)
    }),
  )
})

describe.each(Object.entries(clients))("%s", (_, makeCall) => {
  it.live("the server and its models describe themselves", () =>
    Effect.gen(function* () {
      const call = yield* makeCall(yield* serve())
      expect(yield* call(method.serverLive, {})).toMatchObject({ response: { live: true } })
      expect(yield* call(method.serverReady, {})).toMatchObject({ response: { ready: true } })
      expect(yield* call(method.serverMetadata, {})).toMatchObject({ response: { name: "nereid", version: "0" } })
      expect(yield* call(method.modelReady, { name: "addsub" })).toMatchObject({ response: { ready: true } })
      expect(yield* call(method.modelReady, { name: "nobody" })).toMatchObject({ response: { ready: false } })
      expect(yield* call(method.modelMetadata, { name: "nobody" })).toEqual(unknownModel)
      expect(yield* call(method.modelMetadata, { name: "addsub" })).toMatchObject({
        response: {
          name: "addsub",
          versions: ["1"],
          inputs: [
            { name: "A", datatype: "INT32", shape: [-1n, 4n] },
            { name: "B", datatype: "INT32", shape: [-1n, 4n] },
          ],
        },
      })
    }),
  )

  it.live("health follows readiness", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      const call = yield* makeCall(server)
      const { check } = Health.method
      const serving = { response: { status: ServingStatus.SERVING } }
      expect(yield* call(check, {})).toMatchObject(serving)
      expect(yield* call(check, { service: "inference.GRPCInferenceService" })).toMatchObject(serving)
      expect(yield* call(check, { service: "other" })).toMatchObject({ code: 5, message: "unknown service 'other'" })
      server.gateway.beginDrain()
      expect(yield* call(check, {})).toMatchObject({ response: { status: ServingStatus.NOT_SERVING } })
      expect(yield* call(method.serverReady, {})).toMatchObject({ response: { ready: false } })
    }),
  )
})

it.live("a port that is taken is an error of the start", () =>
  Effect.gen(function* () {
    const { gateway, port } = yield* serve()
    const error = yield* Effect.flip(GrpcServer.make(gateway, { host: "127.0.0.1", port }))
    expect(error._tag).toBe("ServeError")
    expect(error.message).toMatch(/^cannot listen for gRPC on 127\.0\.0\.1:[0-9]+: .*EADDRINUSE/)
  }),
)
