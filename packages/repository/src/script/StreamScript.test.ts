/** Scripts of a repository whose configuration says that they are decoupled: any number of responses to a request. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Tensor } from "@nereid/core"
import { stream } from "@nereid/core/internal/running/CallableModel"
import { repository } from "../../../../test/fixtures/repository.ts"
import { scripts } from "../Repository.fixture.ts"
import * as ModelScript from "./ModelScript.ts"

const config = `
  model_transaction_policy { decoupled: true }
  input { name: "N" data_type: TYPE_INT32 dims: 1 }
  output { name: "I" data_type: TYPE_INT32 dims: 1 }`

/**
 * Values that a script reports to this test, which imports it into its own process. The script's folder has no
 * packages.
 */
const received: Array<unknown> = []
let ended = Promise.withResolvers<void>()
Reflect.set(globalThis, "told", (subject: unknown) => {
  received.push(subject)
  if (subject === "ended") ended.resolve()
})
Reflect.set(globalThis, "make", Tensor.make)
Reflect.set(globalThis, "script", ModelScript)

const one = `(i) => ({ I: globalThis.make("INT32", [1, 1], Int32Array.of(i)) })`

const counting = (body = "yield one(start + i)", kind = "function*") => `
const one = ${one}
export default {
  initialize: () => 10,
  execute: ${kind} ({ inputs: { N }, signal }, start) {
    try {
      for (let i = 0; i < N.data[0]; i++) ${body}
    } finally {
      globalThis.told("ended")
    }
  },
  finalize: (start) => globalThis.told("finalized " + start),
}`

const openScript = scripts(repository)

/** The only model of a repository, and what it answers a number with. */
const serving = Effect.fnUntraced(function* (script: string, more = "max_batch_size: 4") {
  received.length = 0
  ended = Promise.withResolvers()
  const opened = yield* openScript(script, more + config, "model.js")
  const model = opened.model()
  const batching = model.description.maxBatchSize > 0
  const responses = (count: number, rows = 1) =>
    Stream.map(
      stream(model.calls, {
        id: "",
        inputs: [
          Tensor.make(
            "INT32",
            batching ? [rows, 1] : [1],
            Int32Array.from({ length: rows }, () => count),
          ),
        ],
        rows,
        parameters: {},
        deadline: undefined,
      }),
      ({ outputs }) => outputs[0]?.data[0],
    )
  return { model, responses }
})

describe("a decoupled script", () => {
  it.live.each([
    ["a generator", counting()],
    ["an asynchronous generator", counting(undefined, "async function*")],
    [
      "a function that returns a list",
      `const one = ${one}
      export default { execute: ({ inputs: { N } }) => Array.from({ length: N.data[0] }, (_, i) => one(i + 10)) }`,
    ],
  ] as const)("answers by any number of responses: %s", ([, script]) =>
    Effect.gen(function* () {
      const { model, responses } = yield* serving(script)
      expect(model.calls.decoupled).toBe(true)
      expect(yield* Stream.runCollect(responses(3))).toEqual([10, 11, 12])
      expect(yield* Stream.runCollect(responses(0))).toEqual([])
      expect(model.description.statistics.success.count).toBe(2)
      expect([...model.description.statistics.responses.keys()]).toContain(2)
    }),
  )

  it.live("has tensors without a row axis where the model does not batch", () =>
    Effect.gen(function* () {
      const echo = "{ globalThis.told(N.shape); yield { I: N } }"
      const { responses } = yield* serving(counting(echo), "")
      expect(yield* Stream.runCollect(responses(2))).toEqual([2, 2])
      expect(received).toEqual([[1], [1], "ended"])
    }),
  )

  it.live("is ended where it yields when its reader leaves", () =>
    Effect.gen(function* () {
      const { responses } = yield* serving(counting())
      expect(yield* Stream.runCollect(Stream.take(responses(1_000_000), 2))).toEqual([10, 11])
      yield* Effect.promise(() => ended.promise)
      expect(received).toEqual(["ended"])
    }),
  )

  it.live("fails behind the responses that it has given", () =>
    Effect.gen(function* () {
      const { model, responses } = yield* serving(counting("{ if (i > 1) throw new Error('no more'); yield one(i) }"))
      const seen: Array<unknown> = []
      const failed = yield* Effect.flip(Stream.runForEach(responses(5), (value) => Effect.sync(() => seen.push(value))))
      expect([seen, failed]).toMatchObject([
        [0, 1],
        { _tag: "ExecutionFailed", message: expect.stringContaining("no more") },
      ])
      expect(model.life.isReady()).toBe(true)
    }),
  )

  it.live.each([
    ["nothing that can be iterated", "export default { execute: () => 7 }", "execute must be a generator"],
    [
      "a response of another datatype",
      `export default { execute: () => [{ I: globalThis.make("FP32", [1, 1], Float32Array.of(1)) }] }`,
      "output 'I' of model 'm': wrong datatype: declared as INT32[-1,1], got FP32[1,1]",
    ],
    ["a response that is none", "export default { execute: () => [undefined] }", ""],
  ] as const)("fails the request where it returns %s", ([, script, message]) =>
    Effect.gen(function* () {
      const { responses } = yield* serving(script)
      const failed = yield* Effect.flip(Stream.runCollect(responses(1)))
      expect(failed).toMatchObject({ _tag: "ExecutionFailed", message: expect.stringContaining(message) })
    }),
  )

  it.live("has all rows of a request", () =>
    Effect.gen(function* () {
      const { responses } = yield* serving(counting("{ globalThis.told(N.shape); yield { I: N } }"))
      expect(yield* Stream.runCollect(responses(1, 2))).toEqual([1])
      expect(received).toEqual([[2, 1], "ended"])
    }),
  )

  it.live("may leave out outputs", () =>
    Effect.gen(function* () {
      const { responses } = yield* serving("export default { execute: () => [{}] }")
      expect(yield* Stream.runCollect(responses(1))).toEqual([undefined])
    }),
  )
})

it.live.each([
  ["is made for batches", "export default globalThis.script.define({ execute: () => [] })"],
  ["gives a promise", "export default { execute: async (requests) => requests.map(() => new Error('no')) }"],
] as const)("the model is unavailable where its script %s, and the reason says which line to change", ([, script]) =>
  Effect.gen(function* () {
    const { index } = yield* openScript(script, config)
    const reason = expect.stringMatching(
      /model\.ts answers batches, but config\.pbtxt has model_transaction_policy \{ decoupled: true \}: remove that line, or write ModelScript\.stream\(/,
    )
    expect(index()).toMatchObject([{ state: "UNAVAILABLE", reason }])
  }),
)

it.live("a script that is made for a stream streams", () =>
  Effect.gen(function* () {
    const { index } = yield* openScript("export default globalThis.script.stream({ execute: () => [] })", config)
    expect(index()).toMatchObject([{ state: "READY" }])
  }),
)
