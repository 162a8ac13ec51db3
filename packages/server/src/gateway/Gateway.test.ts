import { altered } from "../../../../test/fixtures/runningModel.ts"
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { expect, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import type { WireRequest } from "@nereid/core/internal/wire/WireRequest"
import { Effect, Result } from "effect"
import { TestClock } from "effect/testing"
import * as Gateway from "./Gateway.ts"

class Echo extends Model.Service<Echo>()("echo", { inputs: { x: Tensor.INT32(1) }, outputs: { x: Tensor.INT32(1) } }) {}

const wire: WireRequest = { modelName: "echo", modelVersion: "", id: "", parameters: {}, inputs: [], outputs: [] }

/** Returns the outcome that the gateway reports at once. */
const refusal = (gateway: Gateway.Gateway) => {
  const tags: Array<string> = []
  gateway.infer(wire, undefined, (outcome) => tags.push(Result.isFailure(outcome) ? outcome.failure._tag : "answered"))
  return tags
}

it.effect("a request is refused, and counted, while its model is not ready and where it is not valid", () =>
  Effect.gen(function* () {
    const { model } = yield* Echo
    let ready = false
    const gateway = Gateway.make(ModelStore.of([altered(model, { life: { isReady: () => ready } })]), {
      id: "nereid",
      version: "0",
    })
    expect(gateway.isReady()).toBe(false)
    expect(refusal(gateway)).toEqual(["ModelNotReady"])
    expect(model.description.statistics.failures).toMatchObject({ REJECTED: 1, OTHER: 0 })
    ready = true
    expect(refusal(gateway)).toEqual(["InvalidRequest"])
    expect(model.description.statistics.failures).toMatchObject({ REJECTED: 1, OTHER: 1 })
    expect(gateway.isReady()).toBe(true)
    gateway.beginDrain()
    expect(gateway.isReady()).toBe(false)
  }).pipe(Effect.provide(Model.each(Echo, ({ x }) => Effect.succeed({ x })))),
)

it.effect("the server is ready if the code of every model says so, and in no case during a stop", () =>
  Effect.gen(function* () {
    const { model } = yield* Echo
    const answer = { ready: false, meanwhile: () => {} }
    const probe = Effect.sync(() => {
      answer.meanwhile()
      return answer.ready
    })
    const store = ModelStore.of([altered(model, { life: { probe } })])
    const make = (strictReadiness: boolean) => Gateway.make(store, { id: "nereid", version: "0", strictReadiness })
    const gateway = make(true)
    expect([gateway.isReady(), yield* gateway.serverReady, yield* make(false).serverReady]).toEqual([true, false, true])
    answer.ready = true
    expect(yield* gateway.serverReady).toBe(true)
    answer.meanwhile = () => gateway.beginDrain()
    expect(yield* gateway.serverReady).toBe(false)
    answer.meanwhile = () => expect.unreachable("a server that stops asks no code")
    expect(yield* gateway.serverReady).toBe(false)
  }).pipe(Effect.provide(Model.each(Echo, ({ x }) => Effect.succeed({ x })))),
)

it.effect("requests hold so many bytes and no more until they are answered or taken back", () =>
  Effect.gen(function* () {
    const { model } = yield* Echo
    const registry = ModelStore.of([model])
    const gateway = Gateway.make(registry, { id: "nereid", version: "0", maxInFlightSize: 100 })
    const outcomes: Array<string> = []
    const infer = (room: number) =>
      gateway.infer(
        {
          ...wire,
          id: "7",
          inputs: [{ name: "x", datatype: "INT32", shape: [1], bytes: new Uint8Array(new ArrayBuffer(room), 0, 4) }],
        },
        undefined,
        (outcome) => outcomes.push(Result.isFailure(outcome) ? outcome.failure.message : "answered"),
      )
    const cancel = infer(50)
    infer(40)
    infer(8)
    const limit =
      "[request id: 7] Exceeds maximum queue size: callers hold 92 bytes of this server's memory, at most 100"
    expect(outcomes).toEqual([limit])
    expect(model.description.statistics.failures.REJECTED).toBe(1)
    cancel()
    cancel()
    infer(48)
    yield* TestClock.adjust(0)
    expect(outcomes).toEqual([limit, "answered", "answered"])
    infer(90)
    infer(90)
    yield* TestClock.adjust(0)
    expect(outcomes.slice(3)).toEqual([expect.stringContaining("hold 91 bytes"), "answered"])
  }).pipe(Effect.provide(Model.each(Echo, ({ x }) => Effect.succeed({ x })))),
)

it.effect("makes the declared contract of a model once (C3)", () =>
  Effect.gen(function* () {
    const { model } = yield* Echo
    const gateway = Gateway.make(ModelStore.of([model]), { id: "nereid", version: "0" })
    const contract = () => Result.getOrThrow(gateway.modelMetadata("echo", "")).contract
    expect(contract()?.text).toBe('{"inputs":[{"name":"x","form":"tensor"}],"outputs":[{"name":"x","form":"tensor"}]}')
    expect(contract()).toBe(contract())
  }).pipe(Effect.provide(Model.each(Echo, ({ x }) => Effect.succeed({ x })))),
)

it("names the extensions of the protocol that work here, in its order (C2)", () => {
  expect(Gateway.make(new ModelStore(), { id: "nereid", version: "0" }).metadata.extensions).toEqual([
    "classification",
    "sequence",
    "model_repository",
    "model_repository(unload_dependents)",
    "schedule_policy",
    "model_configuration",
    "system_shared_memory",
    "cuda_shared_memory",
    "binary_tensor_data",
    "parameters",
    "statistics",
    "trace",
    "logging",
    "model_metadata(contract)",
  ])
})
