/** Spans of requests over every protocol: their parents in the clients' traces, and their child spans. */
import { assert, describe, expect, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { Deferred, Effect, Exit, Fiber, Layer, Option, Tracer } from "effect"
import { parentOf, recorder } from "../../../../test/fixtures/spans.ts"
import { inferFrame, rawCall, rawSession } from "../grpc/GrpcServer.fixture.ts"
import { inferModel } from "../http/HttpInfer.fixture.ts"
import * as Server from "../Server.ts"

const io = { inputs: { X: Tensor.scalar("INT32") }, outputs: { X: Tensor.scalar("INT32") } }

/** Model whose handler creates a span and calls the other model. */
class Outer extends Model.Service<Outer>()("outer", { ...io, maxBatchSize: 4 }) {}
class Inner extends Model.Service<Inner>()("inner", { ...io, maxBatchSize: 4 }) {}

const OuterLive = Model.each(
  Outer,
  Effect.gen(function* () {
    const { infer } = yield* Inner
    return Effect.fn("handle")(function* ({ X }) {
      return X < 0 ? yield* Effect.fail("negative") : yield* infer({ X })
    })
  }),
)

const InnerLive = Model.batch(Inner, ({ X }) => Effect.withSpan(Effect.succeed({ X }), "compute all"))

const serve = Effect.fnUntraced(function* (tracer: Tracer.Tracer | undefined, options: Server.ServerOptions = {}) {
  const free = { host: "127.0.0.1", port: 0 }
  const layer = Server.layer([Outer, Inner], { http: free, grpc: free, metrics: false, ...options }).pipe(
    Layer.provide(OuterLive),
    Layer.provide(InnerLive),
    Layer.provide(tracer === undefined ? Layer.empty : Layer.succeed(Tracer.Tracer, tracer)),
  )
  const { http, grpc } = yield* Effect.provide(Server.Server, yield* Layer.build(layer))
  assert(http !== undefined && grpc !== undefined)
  const session = yield* rawSession({ authority: `http://127.0.0.1:${grpc.port}` })
  const inputs = (X: number) => [{ name: "X", datatype: "INT32", shape: [1, 1], data: [X] }]
  return {
    overHttp: (X: number, headers: Record<string, string> = {}) =>
      inferModel(http, "outer", JSON.stringify({ id: "7", inputs: inputs(X) }), headers),
    overGrpc: (X: number, headers: Record<string, string> = {}) =>
      rawCall(session, {
        chunks: [
          inferFrame({
            modelName: "outer",
            inputs: [{ name: "X", datatype: "INT32", shape: [1n, 1n], contents: { intContents: [X] } }],
          }),
        ],
        headers,
      }),
  }
})

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736"
const caller = { traceparent: `00-${traceId}-00f067aa0ba902b7-01` }

describe("a request with a traceparent", () => {
  it.live.each([
    ["overHttp", true],
    ["overGrpc", true],
    ["overGrpc", false],
  ] as const)("%s, fastInference: %s: all spans of a request are in the trace of its caller", ([variant, fast]) =>
    Effect.gen(function* () {
      const { tracer, spans, only } = recorder()
      const server = yield* serve(tracer, { fastInference: fast })
      // Those of the load.
      spans.length = 0
      yield* server[variant](5, caller)
      const request = only("infer outer")
      expect([request.kind, request.traceId, parentOf(request)]).toEqual(["server", traceId, "00f067aa0ba902b7"])
      expect(request.attributes.get("nereid.model")).toBe("outer")
      // The handler's span, the model that it calls, and the batch of that one request.
      expect(parentOf(only("handle"))).toBe(request.spanId)
      const inner = only("infer inner")
      expect([inner.kind, parentOf(inner)]).toEqual(["internal", request.spanId])
      const batch = only("batch inner")
      expect(parentOf(batch)).toBe(inner.spanId)
      expect(parentOf(only("compute all"))).toBe(batch.spanId)
      for (const span of spans) {
        expect([span.name, span.traceId, span.status._tag]).toEqual([span.name, traceId, "Ended"])
        if (span.status._tag === "Ended") expect(span.status.endTime >= span.status.startTime, span.name).toBe(true)
      }
      const parts = spans.filter((span) => parentOf(span) === request.spanId).map(({ name }) => name)
      expect(parts.toSorted()).toEqual(["batch outer", "compute", "handle", "infer inner", "queue"])
    }),
  )

  it.live("that is not sampled stays unsampled; an invalid one starts a new trace", () =>
    Effect.gen(function* () {
      const { tracer, named } = recorder()
      const { overHttp } = yield* serve(tracer)
      yield* overHttp(1, { traceparent: `00-${traceId}-00f067aa0ba902b7-00` })
      yield* overHttp(2, { traceparent: "00-nonsense" })
      yield* overHttp(3)
      const [unsampled, ...others] = named("infer outer")
      expect([unsampled?.traceId, unsampled?.sampled]).toEqual([traceId, false])
      expect(others.map(({ parent, sampled }) => [parent, sampled])).toEqual([
        [Option.none(), true],
        [Option.none(), true],
      ])
      expect(new Set(named("infer outer").map((span) => span.traceId)).size).toBe(3)
    }),
  )

  it.live("that fails has the failure in its span", () =>
    Effect.gen(function* () {
      const { tracer, only } = recorder()
      const { overHttp } = yield* serve(tracer)
      expect((yield* overHttp(-1)).status).toBe(500)
      const { status } = only("infer outer")
      assert(status._tag === "Ended" && Exit.isFailure(status.exit))
      expect(only("infer outer").attributes.get("nereid.request_id")).toBe("7")
    }),
  )
})

it.live("a batch of several requests is a separate trace, with links in both directions", () =>
  Effect.gen(function* () {
    class Held extends Model.Service<Held>()("held", { ...io, maxBatchSize: 4 }) {}
    const { tracer, named } = recorder()
    const open = yield* Deferred.make<void>()
    const HeldLive = Model.batch(Held, ({ X }) => Effect.as(Deferred.await(open), { X }))
    const free = { host: "127.0.0.1", port: 0 }
    const layer = Server.layer([Held], { http: free, grpc: false, metrics: false })
    const context = yield* Layer.build(
      layer.pipe(Layer.provideMerge(HeldLive), Layer.provide(Layer.succeed(Tracer.Tracer, tracer))),
    )
    const { http } = yield* Effect.provide(Server.Server, context)
    const { model } = yield* Effect.provide(Held, context)
    const inputs = [{ name: "X", datatype: "INT32", shape: [1, 1], data: [1] }]
    const send = Effect.forkChild(inferModel(http ?? free, "held", JSON.stringify({ inputs })), {
      startImmediately: true,
    })
    const first = yield* send
    yield* Effect.yieldNow.pipe(Effect.repeat({ until: () => named("batch held").length === 1 }))
    const others = [yield* send, yield* send]
    yield* Effect.yieldNow.pipe(Effect.repeat({ until: () => model.life.pending() === 2 }))
    yield* Deferred.succeed(open, undefined)
    for (const fiber of [first, ...others]) yield* Fiber.join(fiber)
    const [, batch] = named("batch held")
    assert(batch !== undefined)
    const requests = named("infer held").slice(1)
    expect(batch.parent).toEqual(Option.none())
    expect(batch.links.map(({ span }) => span.spanId)).toEqual(requests.map(({ spanId }) => spanId))
    expect(Object.fromEntries(batch.attributes)).toEqual({
      "nereid.rows": 2,
      "nereid.requests": 2,
      "nereid.instance": "held_0",
    })
    const computed = named("compute").filter((span) => requests.some(({ spanId }) => spanId === parentOf(span)))
    expect(computed.map(({ links }) => links.map(({ span }) => span.spanId))).toEqual([[batch.spanId], [batch.spanId]])
  }),
)

it.live("without a tracer no request has a span, and no batch", () =>
  Effect.gen(function* () {
    const { overHttp, overGrpc } = yield* serve(undefined)
    expect((yield* overHttp(1, caller)).status).toBe(200)
    expect((yield* overGrpc(1, caller)).status).toBe("0")
  }),
)
