/** Fixture of the tests of the live view: models behind a gateway and an HTTP port, with the time of the test clock. */
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { LiveStep } from "@nereid/dashboard/internal/live/LiveStep"
import { Clock, Deferred, type Duration, Effect, Layer, Queue } from "effect"
import { TestClock } from "effect/testing"
import * as Gateway from "../gateway/Gateway.ts"
import * as HttpServer from "../http/HttpServer.ts"
import { LiveView } from "./LiveView.ts"
import * as LogView from "./LogView.ts"

/** Serves models that the layer provides. Steps end where the test says so. */
export const harness = Effect.fnUntraced(function* <S, A extends ReadonlyArray<{ readonly model: RunningModel }>>(
  layer: Layer.Layer<S>,
  services: Effect.Effect<A, never, S>,
  options: Partial<HttpServer.HttpServerOptions> & { readonly maxInFlightSize?: number } = {},
) {
  const { maxInFlightSize = Infinity, ...http } = options
  const context = yield* Layer.build(layer)
  const models = yield* Effect.provideContext(services, context)
  const store = ModelStore.of(models.map(({ model }) => model))
  const gateway = Gateway.make(store, { id: "nereid", version: "0", maxInFlightSize })
  const clock = yield* Clock.Clock
  const view = new LiveView(gateway, {
    epoch: () => clock.currentTimeMillisUnsafe(),
    monotonic: () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6,
  })
  yield* Effect.addFinalizer(() => Effect.sync(() => view.close()))
  const log = yield* LogView.make(gateway)
  const { port } = yield* HttpServer.make(gateway, {
    host: "127.0.0.1",
    port: 0,
    dashboard: true,
    streams: { live: view, log },
    ...http,
  })
  /** Lets time pass, a second by default, and ends the step. */
  const step = (duration: Duration.Input = "1 second"): Effect.Effect<LiveStep> =>
    Effect.andThen(
      TestClock.adjust(duration),
      Effect.sync(() => view.step()),
    )
  return { models, store, gateway, view, step, url: `http://127.0.0.1:${port}` }
})

/** A handler that waits for the test in each batch. */
export const makeGate = Effect.gen(function* () {
  const batches = yield* Queue.unbounded<Deferred.Deferred<void>>()
  const started = yield* Queue.unbounded<void>()
  const wait = Effect.gen(function* () {
    const gate = yield* Deferred.make<void>()
    yield* Queue.offer(started, undefined)
    yield* Queue.offer(batches, gate)
    yield* Deferred.await(gate)
  })
  /** Ends the oldest batch, once it has begun. */
  const release = Effect.flatMap(Queue.take(batches), (gate) => Deferred.succeed(gate, undefined))
  return { wait, release, began: Queue.take(started) }
})
