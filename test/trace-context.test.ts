/** Traces that go through several servers: what the typed clients tell of their callers, over each protocol. */
import { assert, describe, it } from "@effect/vitest"
import { Client } from "@nereid/client"
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Context, Effect, Layer, Stream, Tracer } from "effect"
import { parentOf, recorder } from "./fixtures/spans.ts"

const io = { inputs: { X: Tensor.scalar("INT32") }, outputs: { X: Tensor.scalar("INT32") } }

class Inner extends Model.Service<Inner>()("inner", { ...io, maxBatchSize: 4 }) {}
class Outer extends Model.Service<Outer>()("outer", io) {}

const InnerLive = Model.each(
  Inner,
  Effect.fn("handle")(({ X }) => Effect.succeed({ X })),
)

/** The layer of a server, or of a client, whose spans are recorded. */
const recorded = () => {
  const { tracer, ...recording } = recorder()
  return { ...recording, layer: Layer.succeed(Tracer.Tracer, tracer) }
}

const free = { host: "127.0.0.1", port: 0 }

const serving = Effect.fnUntraced(function* (tracing: Layer.Layer<never>) {
  const layer = Server.layer([Inner], { http: free, grpc: free, metrics: false }).pipe(
    Layer.provide(InnerLive),
    Layer.provide(tracing),
  )
  const { http, grpc } = yield* Effect.provideContext(Server.Server, yield* Layer.build(layer))
  assert(http !== undefined && grpc !== undefined)
  return { http: `http://127.0.0.1:${http.port}`, grpc: `grpc://127.0.0.1:${grpc.port}` }
})

describe.each(["http", "grpc"] as const)("over %s", (protocol) => {
  it.live("a call from an effect with a span is a part of it, as are its streams", () =>
    Effect.gen(function* () {
      const server = recorded()
      const urls = yield* serving(server.layer)
      const context = yield* Layer.build(Client.layer(Inner, { url: urls[protocol] }))
      const { infer, stream } = Context.get(context, Inner)
      const calls = { infer: infer({ X: 7 }), stream: Stream.runDrain(stream({ X: 7 })) }
      for (const [name, call] of Object.entries(calls)) {
        const client = recorded()
        yield* Effect.withSpan(Effect.asVoid(call), name).pipe(Effect.provide(client.layer))
        const { traceId, spanId } = client.only(name)
        const pending = server.only("infer inner")
        assert.deepStrictEqual([pending.traceId, parentOf(pending)], [traceId, spanId])
        assert.deepStrictEqual(parentOf(server.only("handle")), pending.spanId)
        server.spans.length = 0
      }
      // Without a tracer, Effect's spans are not exported.
      yield* Effect.withSpan(infer({ X: 7 }), "unseen")
      assert.isUndefined(parentOf(server.only("infer inner")))
    }),
  )

  it.live("a call to another server is in the trace of the request", () =>
    Effect.gen(function* () {
      const [first, second] = [recorded(), recorded()]
      const urls = yield* serving(second.layer)
      const OuterLive = Model.each(
        Outer,
        Effect.map(Inner, ({ infer }) => infer),
      ).pipe(Layer.provide(Client.layer(Inner, { url: urls[protocol] })))
      const layer = Server.layer([Outer], { http: free, grpc: false, metrics: false }).pipe(
        Layer.provide(OuterLive),
        Layer.provide(first.layer),
      )
      const { http } = yield* Effect.provideContext(Server.Server, yield* Layer.build(layer))
      const client = yield* Layer.build(Client.layer(Outer, { url: `http://127.0.0.1:${http?.port}` }))
      yield* Context.get(client, Outer).infer({ X: 1 })
      const [request, call] = [first.only("infer outer"), first.only("infer inner")]
      assert.deepStrictEqual(parentOf(call), request.spanId)
      const pending = second.only("infer inner")
      assert.deepStrictEqual([pending.traceId, parentOf(pending)], [request.traceId, call.spanId])
    }),
  )
})

it.live("a model in the process is a part of its caller's span", () =>
  Effect.gen(function* () {
    const { layer, only } = recorded()
    const context = yield* Layer.build(InnerLive.pipe(Layer.provide(layer)))
    const { infer } = Context.get(context, Inner)
    yield* Effect.withSpan(infer({ X: 1 }), "outside").pipe(Effect.provide(layer))
    assert.strictEqual(parentOf(only("handle")), only("outside").spanId)
  }),
)
