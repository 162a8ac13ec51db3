/** Models of a repository that are scripts, in TypeScript and in JavaScript. */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Logger, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Tensor } from "@nereid/core"
import { repository } from "../../../../test/fixtures/repository.ts"
import { callModel, open, scripts } from "../Repository.fixture.ts"
import * as ModelScript from "./ModelScript.ts"

const tensors = `
  input { name: "X" data_type: TYPE_FP32 dims: 1 }
  output { name: "Y" data_type: TYPE_FP32 dims: 1 }`

/** Values that scripts report to this test, which imports them into its own process. Their folders have no packages. */
const received: Array<unknown> = []
Reflect.set(globalThis, "told", (subject: unknown) => received.push(subject))
Reflect.set(globalThis, "make", Tensor.make)
Reflect.set(globalThis, "script", ModelScript)

const scaling = `
interface State { readonly by: number }

export default {
  initialize: async ({ modelConfig, modelName, modelVersion, modelInstanceName, modelInstanceKind, modelRepository }: any): Promise<State> => {
    globalThis.told([modelName, modelVersion, modelInstanceName, modelInstanceKind, modelRepository.endsWith("/" + modelName)])
    return { by: Number(modelConfig.parameters.by.stringValue) }
  },
  execute: (requests: ReadonlyArray<any>, { by }: State) => {
    globalThis.told(requests.length)
    return requests.map(({ inputs: { X }, parameters }) =>
      parameters["fail"] === true
        ? new Error("as it was asked to")
        : { Y: globalThis.make("FP32", X.shape, X.data.map((x: number) => x * by)) })
  },
  finalize: ({ by }: State) => globalThis.told("finalized " + by),
}
`

const one = (value: number) => Tensor.make("FP32", [1, 1], Float32Array.of(value))

const openScript = scripts(repository)

const scaled = `max_batch_size: 4 ${tensors} dynamic_batching {} parameters { key: "by" value { string_value: "3" } }`

describe("a script", () => {
  it.live("is initialized once for each instance, executes batches, and is finalized when it unloads", () =>
    Effect.gen(function* () {
      received.length = 0
      const scope = yield* Scope.make()
      const config = `${scaled} instance_group { count: 2 kind: KIND_CPU }`
      const { model, configuration } = yield* Scope.provide(openScript(scaling, config), scope)
      expect(received.splice(0)).toEqual([
        ["m", "1", "m_0_0", "CPU", true],
        ["m", "1", "m_0_1", "CPU", true],
      ])
      const responses = yield* Effect.forEach([1, 2, 3], (value) => callModel(model(), [one(value)]), {
        concurrency: 3,
      })
      expect(responses.map(([output]) => output?.data[0])).toEqual([3, 6, 9])
      expect(received.splice(0)).toEqual([3])
      expect(configuration(model())).toMatchObject({ backend: "nereid", defaultModelFilename: "model.ts" })
      yield* Scope.close(scope, Exit.void)
      expect(received.splice(0)).toEqual(["finalized 3", "finalized 3"])
    }),
  )

  it.live("receives the arguments of Triton's Python backend, also as strings", () =>
    Effect.gen(function* () {
      received.length = 0
      const script = `export default {
        initialize: ({ args }) => globalThis.told(args),
        execute: () => [],
      }`
      yield* openScript(script, scaled)
      const [args] = received.splice(0)
      expect(args).toEqual({
        model_config: expect.any(String),
        model_instance_kind: "CPU",
        model_instance_device_id: "0",
        model_instance_name: "m_0",
        model_repository: expect.stringMatching(/\/m$/),
        model_version: "1",
        model_name: "m",
      })
      expect(JSON.parse(Reflect.get(Object(args), "model_config"))).toMatchObject({
        name: "m",
        max_batch_size: 4,
        input: [{ name: "X", data_type: "TYPE_FP32", dims: [1] }],
        parameters: { by: { string_value: "3" } },
      })
    }),
  )

  it.live("has batches of one request without dynamic batching", () =>
    Effect.gen(function* () {
      received.length = 0
      const { model } = yield* openScript(scaling, scaled.replace("dynamic_batching {}", ""))
      received.length = 0
      yield* Effect.forEach([1, 2, 3], (value) => callModel(model(), [one(value)]), { concurrency: 3 })
      expect(received.splice(0)).toEqual([1, 1, 1])
    }),
  )

  it.live("has batches whose requests agree in the inputs that they bring, and in the shapes of those", () =>
    Effect.gen(function* () {
      const script = `export default { execute: (requests) => {
        globalThis.told(requests.map(({ inputs }) => Object.entries(inputs).map(([name, { shape }]) => name + shape).join(" ")))
        return requests.map(({ inputs: { X } }) => ({ Y: X }))
      } }`
      const config = `max_batch_size: 8 dynamic_batching {}
        input [ { name: "X" data_type: TYPE_FP32 dims: -1 }, { name: "Z" data_type: TYPE_FP32 dims: 1 optional: true } ]
        output { name: "Y" data_type: TYPE_FP32 dims: -1 }`
      const { model } = yield* openScript(script, config)
      received.length = 0
      const x = (rows: number, columns: number) =>
        Tensor.make("FP32", [rows, columns], new Float32Array(rows * columns))
      const requests = [
        [x(1, 1), undefined],
        [x(2, 1), x(2, 1)],
        [x(1, 2), undefined],
        [x(2, 1), undefined],
      ]
      yield* Effect.forEach(requests, (inputs) => callModel(model(), inputs), { concurrency: "unbounded" })
      expect(received.splice(0)).toEqual([["X1,1"], ["X2,1 Z2,1"], ["X1,2"], ["X2,1"]])
    }),
  )

  it.live("may be JavaScript, and asynchronous", () =>
    Effect.gen(function* () {
      const script = "export default { execute: async (requests) => requests.map(({ inputs }) => ({ Y: inputs.X })) }"
      const { model } = yield* openScript(script, `max_batch_size: 2 ${tensors}`, "model.js")
      const [output] = yield* callModel(model(), [one(7)])
      expect(output?.data[0]).toBe(7)
      const separate = yield* openScript(script, tensors, "model.js")
      const [single] = yield* callModel(separate.model(), [Tensor.make("FP32", [1], Float32Array.of(5))])
      expect([single?.shape, single?.data[0]]).toEqual([[1], 5])
    }),
  )

  it.live("that has changed is another one once it is loaded again", () =>
    Effect.gen(function* () {
      const script = (value: number) =>
        `export default { execute: (requests) => requests.map(({ inputs: { X } }) => ({ Y: globalThis.make("FP32", X.shape, Float32Array.of(${value})) })) }`
      const { fixture, load, model } = yield* openScript(script(1), `max_batch_size: 2 ${tensors}`)
      fixture.write("m/1/model.ts", script(22))
      yield* load("m")
      const [output] = yield* callModel(model(), [one(0)])
      expect(output?.data[0]).toBe(22)
    }),
  )
})

it.live("a script of batches that answers too few fails all of them", () =>
  Effect.gen(function* () {
    const { model } = yield* openScript(
      "export default { execute: () => [] }",
      `max_batch_size: 2 dynamic_batching {} ${tensors}`,
    )
    const failed = yield* Effect.flip(callModel(model(), [one(1)]))
    expect(failed.message).toContain("returned 0 results for a batch of 1 requests")
  }),
)

describe("an error in a script", () => {
  const executing = (body: string) => `export default { execute: ${body} }`

  it.live.each([
    ["throws", executing("() => { throw new Error('broken') }"), "broken"],
    ["answers one request with an error", executing("() => [new Error('not this one')]"), "not this one"],
    ["answers too few", executing("() => []"), "returned 0 results for a batch of 1 requests"],
    ["answers a text", executing("() => ['Y']"), "'Y'"],
    ["answers nothing", executing("() => undefined"), "execute must return an array with one response per request"],
    ["answers an iterator", executing("(requests) => requests.values()"), "execute must return an array"],
  ] as const)("is the failure of the request where it %s", ([, script, message]) =>
    Effect.gen(function* () {
      const { model } = yield* openScript(script, `max_batch_size: 2 ${tensors}`)
      const failed = yield* Effect.flip(callModel(model(), [one(1)]))
      expect(failed).toMatchObject({ _tag: "ExecutionFailed", message: expect.stringContaining(message) })
      expect(model().life.isReady()).toBe(true)
    }),
  )

  it.live.each([
    ["does not parse", "export default {", /cannot load .*model\.ts: /],
    ["throws as it is imported", "throw new Error('no weights')", /cannot load .*model\.ts: no weights/],
    [
      "streams its responses",
      "export default { execute: function* () {} }",
      /model\.ts streams its responses, but config\.pbtxt does not have model_transaction_policy \{ decoupled: true \}: add /,
    ],
    [
      "is made for a stream",
      "export default globalThis.script.stream({ execute: () => [] })",
      /model\.ts streams its responses, but .*: add that line, or write ModelScript\.define\(/,
    ],
    ["exports nothing", "export const execute = () => []", /must export a script from ModelScript/],
    [
      "does not initialize",
      "export default { initialize: () => { throw new Error('no memory') }, execute: () => [] }",
      /initialize of .*model\.ts has failed: no memory/,
    ],
  ] as const)("makes the model unavailable where it %s", ([, script, reason]) =>
    Effect.gen(function* () {
      const { index } = yield* openScript(script, `max_batch_size: 2 ${tensors}`)
      expect(index()).toMatchObject([{ state: "UNAVAILABLE", reason: expect.stringMatching(reason) }])
    }),
  )
})

it.effect("logs a script that starts slowly, because nothing is served until it has started", () =>
  Effect.gen(function* () {
    const fixture = yield* repository
    const started = yield* Deferred.make<() => void>()
    Reflect.set(globalThis, "nereidBegun", (end: () => void) => Deferred.doneUnsafe(started, Effect.succeed(end)))
    yield* Effect.addFinalizer(() => Effect.sync(() => Reflect.deleteProperty(globalThis, "nereidBegun")))
    fixture.write("m/1/model.js", "export default { initialize: () => new Promise(nereidBegun), execute: () => [] }")
    fixture.write("m/config.pbtxt", tensors)
    const logged: Array<unknown> = []
    const layer = Logger.layer([Logger.make(({ message }) => void logged.push(message))])
    const opening = yield* Effect.forkChild(Effect.provide(open(fixture), layer))
    const end = yield* Deferred.await(started)
    yield* TestClock.adjust("29 seconds")
    expect(logged).toEqual([])
    yield* TestClock.adjust("1 second")
    expect(logged.flat()).toEqual(["Model 'm' version 1 has been loading for 30 seconds"])
    end()
    const { index } = yield* Fiber.join(opening)
    expect(index()).toMatchObject([{ state: "READY" }])
  }),
)
