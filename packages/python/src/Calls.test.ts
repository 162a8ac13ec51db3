/** Python code of `Python.layer` that calls the models which the layer names. */
import { assert, describe, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { Context, Effect, Layer, Metric, Stream } from "effect"
import { Command, modelFile, python, Single } from "./Python.fixture.ts"
import { Python } from "./index.ts"

const interpreter = python === undefined ? {} : { python }

class Doubled extends Model.Service<Doubled>()("doubled", {
  inputs: { x: Tensor.scalar("FP32") },
  outputs: { y: Tensor.scalar("FP32") },
  maxBatchSize: 8,
}) {}

/** Counts to its input. */
class Count extends Model.Service<Count>()("count", {
  inputs: { x: Tensor.scalar("FP32") },
  outputs: { y: Tensor.scalar("FP32") },
}) {}

const CallerLive = Python.layer(Command, {
  file: modelFile("caller"),
  calls: [Single, Count],
  ...interpreter,
})

const SingleLive = Model.each(Single, ({ x }) => ({ y: 2 * x }))
const CountLive = Model.stream(Count, ({ x }) => Stream.map(Stream.range(1, x), (y) => ({ y })))

const CallsLive = Layer.provideMerge(CallerLive, Layer.merge(SingleLive, CountLive))

const ask = (TEXT: string) =>
  Effect.flatMap(Command, ({ infer }) => infer({ TEXT })).pipe(Effect.map(({ ANSWER }) => ANSWER))

// @ts-expect-error the layer requires the models that its code calls
// @effect-diagnostics-next-line missingLayerContext:off
export const open: Layer.Layer<Command, Python.PythonLoadError, Single> = CallerLive

export const noModel = () =>
  // @ts-expect-error only models can be called
  Python.layer(Command, { file: modelFile("caller"), calls: [Tensor] })

describe.skipIf(python === undefined)("a model.py of Python.layer", () => {
  it.live("calls the models that its layer names", () =>
    Effect.gen(function* () {
      assert.equal(yield* ask("call single"), "[[6.0, 8.0]]")
      assert.equal(yield* ask("call single 1"), "[[6.0, 8.0]]")
      assert.equal(yield* ask("stream count"), "[[1.0], [2.0], [3.0]]")
      const { model } = yield* Single
      assert.equal(model.description.statistics.inferenceCount, 4)
    }).pipe(Effect.provide(CallsLive)),
  )

  it.live("fails with an error that names the model, if that is not among them", () =>
    Effect.gen(function* () {
      const prefix = "Error when running inference: Request for unknown model"
      assert.equal(
        yield* ask("call numbers"),
        `2 Model numbers - ${prefix}: 'numbers' is not among the \`calls\` of the Python.layer of model 'command'`,
      )
      assert.equal(yield* ask("call single 2"), `2 Model single - ${prefix}: 'single' version 2 is not found`)
    }).pipe(Effect.provide(CallsLive)),
  )

  it.live("knows whether they are ready, and loads none", () =>
    Effect.gen(function* () {
      assert.equal(yield* ask("ready single"), "True")
      assert.include((yield* Effect.flip(ask("ready numbers"))).message, "'numbers' is not among the `calls`")
      assert.include((yield* Effect.flip(ask("load single"))).message, "whose code cannot load models")
    }).pipe(Effect.provide(CallsLive)),
  )

  it.live("reaches a model that has replaced one of them", () =>
    Effect.gen(function* () {
      const { model } = yield* Single
      const next = yield* Layer.build(Model.each(Single, ({ x }) => ({ y: 10 * x })))
      model.setSuccessor(() => Context.get(next, Single).model)
      assert.equal(yield* ask("call single"), "[[30.0, 40.0]]")
      assert.equal(yield* ask("ready single"), "True")
    }).pipe(Effect.provide(CallsLive)),
  )

  it.live("makes metrics of the program", () =>
    Effect.gen(function* () {
      yield* ask("call single")
      const found = (yield* Metric.snapshot).find(({ id }) => id === "called")
      assert.deepInclude(found, { type: "Counter", attributes: { model: "command" } })
      assert.deepInclude(found?.state, { count: 1 })
    }).pipe(Effect.provide(CallsLive)),
  )

  it.live("calls them from a function", () =>
    Effect.gen(function* () {
      const { infer } = yield* Doubled
      assert.deepEqual(yield* infer({ x: 4 }), { y: 8 })
    }).pipe(
      Effect.provide(
        Python.layer(Doubled, {
          file: modelFile("functions"),
          function: "doubled_by_single",
          calls: [Single],
          ...interpreter,
        }),
      ),
      Effect.provide(SingleLive),
    ),
  )

  it.live("calls one that is in Python too", () =>
    Effect.gen(function* () {
      assert.equal(yield* ask("call single"), "[[6.0, 8.0]]")
    }).pipe(
      Effect.provide(CallerLive),
      Effect.provide(Python.layer(Single, { file: modelFile("functions"), function: "double", ...interpreter })),
      Effect.provide(CountLive),
    ),
  )
})
