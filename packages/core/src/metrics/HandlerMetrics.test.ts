/** Metrics that handlers declare: what becomes of them in the registry that /metrics shows. */
import { expect, it } from "@effect/vitest"
import { Context, Effect, Exit, Metric, Scope } from "effect"
import * as Metrics from "./HandlerMetrics.ts"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"

const fields = { inputs: { TEXT: Tensor.utf8() }, outputs: { TEXT: Tensor.utf8() } }

class Echo extends Model.Service<Echo>()("echo", { ...fields, version: 3 }) {}

/** A separate registry, and its content. */
const registry = () => {
  const own: Metric.MetricRegistry = new Map()
  const context = Context.make(Metric.MetricRegistry, own)
  const series = (name: string) =>
    Metric.snapshotUnsafe(context)
      .filter(({ id }) => id === name)
      .map(({ attributes, state }) => ({ attributes: attributes ?? {}, state }))
  return { own, series }
}

const labels = { model: "echo", version: "3" }

it.effect("counters, gauges and histograms, with the model's name and version", () =>
  Effect.gen(function* () {
    const { own, series } = registry()
    const handler = Effect.gen(function* () {
      const requests = yield* Metrics.counter("test_requests", { description: "Requests" })
      const longest = yield* Metrics.gauge("test_longest", { description: "The longest text so far" })
      const lengths = yield* Metrics.histogram("test_lengths", { description: "Lengths", boundaries: [1, 10] })
      let max = 0
      return ({ TEXT }: { readonly TEXT: string }) => {
        requests.add(1)
        longest.set((max = Math.max(max, TEXT.length)))
        lengths.observe(TEXT.length)
        return { TEXT }
      }
    })
    const build = Testing.model(Model.each(Echo, handler))
    const model = yield* Effect.provideService(build, Metric.MetricRegistry, own)
    expect(series("test_requests")).toEqual([{ attributes: labels, state: { count: 0, incremental: true } }])
    for (const TEXT of ["", "abc", "a".repeat(11)]) yield* model.infer({ TEXT })
    expect(series("test_requests")).toEqual([{ attributes: labels, state: { count: 3, incremental: true } }])
    expect(series("test_longest")).toEqual([{ attributes: labels, state: { value: 11 } }])
    const buckets = [
      [1, 1],
      [10, 2],
    ]
    expect(series("test_lengths")).toMatchObject([{ attributes: labels, state: { buckets, count: 3, sum: 14 } }])
  }),
)

it.effect("labels with a list have all their series from the start; others are bounded by a number", () =>
  Effect.gen(function* () {
    const { own, series } = registry()
    const handler = Effect.gen(function* () {
      const counted = yield* Metrics.counter("test_counted", {
        description: "By language",
        labels: { language: ["de", "en"], kind: ["word", "sign"] },
      })
      const open = yield* Metrics.counter("test_open", { description: "By text", labels: { text: 2 } })
      return ({ TEXT }: { readonly TEXT: string }) => {
        counted.add(2, { kind: "sign", language: "en" })
        open.add(1, { text: TEXT })
        return { TEXT }
      }
    })
    const build = Testing.model(Model.each(Echo, handler, { instances: 2 }), Echo)
    const model = yield* Effect.provideService(build, Metric.MetricRegistry, own)
    for (const TEXT of ["a", "b", "c", "d", "a"]) yield* model.infer({ TEXT })
    const count = (name: string, label: string) =>
      series(name).map(({ attributes, state }) => [attributes[label], Reflect.get(state, "count")])
    expect(count("test_counted", "language")).toEqual([
      ["de", 0],
      ["de", 0],
      ["en", 0],
      ["en", 10],
    ])
    expect(count("test_open", "text")).toEqual([
      ["a", 2],
      ["b", 1],
      ["other", 2],
    ])
  }),
)

it.effect("instances share their series, which are there until the last of them has gone", () =>
  Effect.gen(function* () {
    const { own, series } = registry()
    const handler = Effect.map(
      Metrics.counter("test_shared", { description: "Shared" }),
      ({ add }) =>
        ({ TEXT }: { readonly TEXT: string }) => {
          add(1)
          return Effect.as(Effect.yieldNow, { TEXT })
        },
    )
    const scope = yield* Scope.make()
    const build = Testing.model(Model.each(Echo, handler, { instances: 2 }), Echo)
    const model = yield* build.pipe(Effect.provideService(Metric.MetricRegistry, own), Scope.provide(scope))
    yield* Effect.all([model.infer({ TEXT: "a" }), model.infer({ TEXT: "b" })], { concurrency: 2 })
    expect(series("test_shared")).toMatchObject([{ state: { count: 2 } }])
    yield* Scope.close(scope, Exit.void)
    expect(own.size).toBe(0)
  }),
)

it.effect("a name is one metric: of one kind and one description, of any number of models", () =>
  Effect.gen(function* () {
    const { own, series } = registry()
    class Other extends Model.Service<Other>()("other", fields) {}
    const echo = ({ TEXT }: { readonly TEXT: string }) => ({ TEXT })
    const declare = (declared: Metrics.Declared<unknown>) => Effect.as(declared, echo)
    const first = declare(Metrics.counter("test_one", { description: "One" }))
    const provide = Effect.provideService(Metric.MetricRegistry, own)
    yield* provide(Testing.model(Model.each(Echo, first)))
    yield* provide(Testing.model(Model.each(Other, first)))
    expect(series("test_one").map(({ attributes }) => attributes["model"])).toEqual(["echo", "other"])
    class Third extends Model.Service<Third>()("third", fields) {}
    for (const different of [
      Metrics.gauge("test_one", { description: "One" }),
      Metrics.counter("test_one", { description: "Another" }),
    ]) {
      const exit = yield* Effect.exit(Effect.scoped(provide(Testing.model(Model.each(Third, declare(different))))))
      expect(String(exit)).toContain(`Metric "test_one" of model 'third' differs from its earlier declaration.`)
    }
  }),
)

it.effect("a handler that updates a metric by a negative or invalid number fails", () =>
  Effect.gen(function* () {
    const { own } = registry()
    const handler = Effect.map(
      Metrics.counter("test_wrong", { description: "Wrong" }),
      ({ add }) =>
        ({ TEXT }: { readonly TEXT: string }) => {
          add(Number(TEXT))
          return { TEXT }
        },
    )
    const build = Testing.model(Model.each(Echo, handler))
    const model = yield* Effect.provideService(build, Metric.MetricRegistry, own)
    for (const TEXT of ["-1", "NaN"]) {
      const { message } = yield* Effect.flip(model.infer({ TEXT }))
      expect(message).toContain(`counter 'test_wrong' must be added at least 0, got ${TEXT}`)
    }
    expect((yield* Effect.flip(model.infer({ TEXT: "Infinity" }))).message).toContain("takes finite numbers")
  }),
)

it("names, labels and bounds are checked when they are declared, labels by the compiler too", () => {
  const description = ""
  const counter =
    (name: string, labels: Metrics.LabelValues = {}) =>
    () =>
      Metrics.counter(name, { description, labels })
  expect(counter("1st")).toThrow(
    'Metric "1st": a name consists of letters, digits, _ and :, and does not begin with a digit.',
  )
  expect(counter("nv_mine")).toThrow('Metric "nv_mine": the prefix nv_ is reserved for the server.')
  expect(counter("a", { "a b": 1 })).toThrow('Metric "a": "a b" is not a valid label')
  expect(counter("a", { __a: 1 })).toThrow('Metric "a": "__a" is not a valid label')
  expect(counter("a", { model: 1 })).toThrow('Metric "a": the label model is reserved.')
  expect(counter("a", { b: [] })).toThrow('Metric "a": the label b must have at least 1 value, got 0.')
  expect(counter("a", { b: 99, c: 99 })).toThrow(
    'Metric "a": its labels produce 10000 series, at most 1000 are allowed.',
  )
  for (const boundaries of [[], [2, 1], [1, 1], [1, Infinity]]) {
    expect(() => Metrics.histogram("a", { description, boundaries })).toThrow(
      'Metric "a": boundaries must be finite, ascending and not empty',
    )
  }
  const types = (
    both: Metrics.Counter<{ readonly a: readonly ["x", "y"]; readonly b: 3 }>,
    none: Metrics.Gauge<{}>,
  ) => {
    both.add(1, { a: "x", b: "anything" })
    none.set(1)
    // @ts-expect-error no such value
    both.add(1, { a: "z", b: "" })
    // @ts-expect-error a label is missing
    both.add(1, { a: "x" })
    // @ts-expect-error no labels at all
    both.add(1)
    // @ts-expect-error it has none
    none.set(1, { a: "x" })
  }
  expect(types).toBeTypeOf("function")
})
