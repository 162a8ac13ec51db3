/** Scripts of a repository in separate threads. */
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { Tensor } from "@nereid/core"
import type { Request } from "@nereid/core/internal/request/Request"
import { infer, stream } from "@nereid/core/internal/running/CallableModel"
import { repository } from "../../../../test/fixtures/repository.ts"
import { callModel, open, scripts } from "../Repository.fixture.ts"

const tensors = `
  input { name: "X" data_type: TYPE_FP32 dims: 1 }
  output { name: "Y" data_type: TYPE_FP32 dims: 1 }`

const threads = (more = "", count = 1) => `
  max_batch_size: 4 ${more} ${tensors} instance_group { count: ${count} }
  parameters { key: "worker_threads" value { string_value: "true" } }
  parameters { key: "by" value { string_value: "3" } }`

/** Source of a script. Its folder has no packages. */
const script = (execute: string, more = "") => `import { existsSync } from "node:fs"
  import { threadId } from "node:worker_threads"
  const make = (X, values) => new X.constructor("FP32", X.shape, new Uint8Array(Float32Array.from(values).buffer))
  export default { ${more} execute: ${execute} }`

const scaling = script(
  `(requests, { by, name }) => requests.map(({ inputs: { X }, parameters, setParameterUnsafe }) => {
    if (parameters["fail"] === true) return new Error("as it was asked to")
    if (parameters["exit"] === true) process.exit(7)
    while (parameters["until"] !== undefined && !existsSync(parameters["until"]));
    setParameterUnsafe("told", name + " " + (threadId > 0) + " " + requests.length)
    return { Y: make(X, X.data.map((x) => x * by)) }
  })`,
  `initialize: ({ modelConfig, modelInstanceName, modelRepository, args }) =>
    ({ by: Number(modelConfig.parameters["by"].stringValue), name: [modelInstanceName, args.model_version].join(" ") }),`,
)

const openScript = scripts(repository)

const x = (...values: ReadonlyArray<number>) => Tensor.make("FP32", [values.length, 1], Float32Array.from(values))

const request = (value: number, parameters: Request["parameters"] = {}): Request => ({
  id: "",
  inputs: [x(value)],
  rows: 1,
  parameters,
  deadline: undefined,
})

it.live("a script in threads has its arguments, its batches and its parameters, and answers each request", () =>
  Effect.gen(function* () {
    const four = "dynamic_batching { preferred_batch_size: 4 max_queue_delay_microseconds: 60000000 }"
    const { model } = yield* openScript(scaling, threads(four, 2), "model.js")
    expect(model().life.instanceGroups()).toMatchObject([{ count: 2 }])
    const calls = [request(1), request(2), request(3, { fail: true }), request(4)].map((one) =>
      Effect.result(infer(model().calls, one)),
    )
    const responses = yield* Effect.all(calls, { concurrency: "unbounded" })
    const expectedTold = { told: expect.stringMatching(/^m_0_[01] 1 true 4$/) }
    expect(responses).toMatchObject([
      { success: { outputs: [{ shape: [1, 1] }], parameters: expectedTold } },
      { success: { parameters: expectedTold } },
      { failure: { _tag: "ExecutionFailed", message: expect.stringContaining("as it was asked to") } },
      { success: { outputs: [{ data: Float32Array.of(12) }] } },
    ])
    expect(model().description.statistics.executionCount).toBe(1)
  }),
)

it.live("has the shapes of a reshape", () =>
  Effect.gen(function* () {
    const { model } = yield* openScript(
      script(`(requests) => requests.map(({ inputs: { X }, setParameterUnsafe }) => {
        setParameterUnsafe("shape", X.shape.join())
        return { Y: X }
      })`),
      threads().replaceAll("dims: 1", "dims: 1 reshape {}"),
      "model.js",
    )
    const response = yield* infer(model().calls, { ...request(0), inputs: [x(5, 6)], rows: 2 })
    expect(response).toMatchObject({ outputs: [{ shape: [2, 1] }], parameters: { shape: "2" } })
  }),
)

it.live("one that computes, or dies, takes no other request along, and no other thread", () =>
  Effect.gen(function* () {
    const { fixture, model } = yield* openScript(scaling, threads("", 2), "model.js")
    const computing = yield* Effect.forkChild(infer(model().calls, request(1, { until: `${fixture.path}/end` })))
    expect(yield* Effect.flip(infer(model().calls, request(1, { exit: true })))).toMatchObject({
      _tag: "ExecutionFailed",
      message: expect.stringContaining("exit code 7"),
    })
    const [output] = yield* callModel(model(), [x(5)])
    expect([output?.data[0], computing.pollUnsafe()]).toEqual([15, undefined])
    fixture.write("end", "")
    expect(yield* Fiber.join(computing)).toMatchObject({ outputs: [{ data: Float32Array.of(3) }] })
  }),
)

it.live("each request is a batch without dynamic batching; a decoupled one has any number of responses", () =>
  Effect.gen(function* () {
    const single = yield* openScript(scaling, threads(), "model.js")
    const { parameters } = yield* infer(single.model().calls, request(1))
    expect(parameters["told"]).toMatch(/ 1$/)
    const counting = script(`function* ({ inputs: { X } }) {
      for (let i = 1; i <= X.data[0]; i++) yield { Y: make(X, [i]) }
    }`)
    const { model } = yield* openScript(counting, threads("model_transaction_policy { decoupled: true }"), "model.js")
    const responses = yield* Stream.runCollect(stream(model().calls, request(3)))
    expect(responses.map(({ outputs: [output] }) => output?.data[0])).toEqual([1, 2, 3])
  }),
)

it.live("a change of instances is made in place, and what it imports is read anew with each load", () =>
  Effect.gen(function* () {
    const importing = `import { value } from "./value.js"
      ${script("(requests) => requests.map(({ inputs: { X } }) => ({ Y: make(X, [value]) }))")}`
    const fixture = yield* repository
    fixture.write("m/1/value.js", "export const value = 1")
    fixture.write("m/1/model.js", importing)
    fixture.write("m/config.pbtxt", threads("", 2))
    const { registry, call, load } = yield* open(fixture, { control: "explicit", load: ["m"] })
    expect(yield* call("m")).toBe(1)
    const [before] = registry.models
    fixture.write("m/config.pbtxt", threads())
    yield* load("m")
    expect(registry.models).toEqual([before])
    expect(before?.life.instanceGroups()).toMatchObject([{ count: 1 }])
    fixture.write("m/1/value.js", "export const value = 22")
    yield* load("m")
    expect(yield* call("m")).toBe(22)
  }),
)

it.live("cannot call another model", () =>
  Effect.gen(function* () {
    const callingScript = script(
      "(requests, models) => Promise.all(requests.map(({ inputs, run }) => run(models.inferBatch('other', inputs)).catch((error) => error)))",
      "initialize: ({ models }) => models,",
    )
    const { model } = yield* openScript(callingScript, threads(), "model.js")
    expect(yield* Effect.flip(infer(model().calls, request(1)))).toMatchObject({
      _tag: "Unsupported",
      message: "model 'other' cannot be called by a script in a worker thread",
    })
  }),
)

it.live.each([
  ["a broken script", "export default {", "", /cannot load .*\/m\/1\/model\.js: /],
  [
    "a script that throws as it is imported",
    "\nthrow new Error('no weights')",
    "",
    /cannot load .*\/m\/1\/model\.js: no weights \(\/.*\/m\/1\/model\.js:2:7\)$/,
  ],
  [
    "an import of what is not exported",
    "import { nothing } from 'node:fs'",
    "",
    /cannot load .*: .* 'nothing' \(\/.*\/m\/1\/model\.js:1\)$/,
  ],
  ["a module that exports no script", "export const execute = () => []", "", /must export a script from ModelScript/],
  [
    "a script that does not initialize",
    script("() => []", "initialize: () => { throw new Error('no memory') },"),
    "",
    /^Internal: initialize of .*\/m\/1\/model\.js has failed: no memory$/,
  ],
  [
    "another word for the parameter",
    script("() => []"),
    "yes",
    /^Invalid argument: parameter 'worker_threads' must be true or false, but 'yes' was given$/,
  ],
] as const)("%s makes the model unavailable", ([, file, requested, reason]) =>
  Effect.gen(function* () {
    const { index } = yield* openScript(
      file,
      requested === "" ? threads() : threads().replace('"true"', `"${requested}"`),
      "model.js",
    )
    expect(index()).toMatchObject([{ state: "UNAVAILABLE", reason: expect.stringMatching(reason) }])
  }),
)
