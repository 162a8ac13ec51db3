/** Ensembles of a repository, with real files and the real ONNX Runtime, without a port (C37). */
import { ModelVersion } from "@nereid/core/internal/lifecycle/ModelVersion"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Logger, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Model, Tensor } from "@nereid/core"
import { stream } from "@nereid/core/internal/running/CallableModel"
import { addSub } from "../../../../test/fixtures/onnx.ts"
import { plus, repository, type RepositoryFixture } from "../../../../test/fixtures/repository.ts"
import { callModel, open } from "../Repository.fixture.ts"

const explicit = { control: "explicit" } as const

const X = 'input { name: "X" data_type: TYPE_FP32 dims: 1 }'
const Y = 'output { name: "Y" data_type: TYPE_FP32 dims: 1 }'

/** X → Y by one model after the other. */
const chain = (models: ReadonlyArray<string>, more = "max_batch_size: 4", step = "model_version: -1") => {
  const tensors = ["X", ...models.slice(1).map((_, index) => `T${index}`), "Y"]
  const steps = models.map(
    (model, index) => `step { model_name: "${model}" ${step}
      input_map { key: "X" value: "${tensors[index]}" } output_map { key: "Y" value: "${tensors[index + 1]}" } }`,
  )
  return `platform: "ensemble" ${more} ${X} ${Y} ensemble_scheduling { ${steps.join("\n")} }`
}

const writeEnsemble = (fixture: RepositoryFixture, name: string, config: string) => {
  fixture.write(`${name}/config.pbtxt`, config)
  // A version of an ensemble is an empty directory.
  fixture.write(`${name}/1/.keep`, "")
}

/** 0 → 3 by `one` (+1) and `two` (+2). */
const three = Effect.gen(function* () {
  const fixture = yield* repository
  fixture.adding("one", 1, 1, "instance_group { count: 1 }")
  fixture.adding("two", 1, 2, "instance_group { count: 1 }")
  writeEnsemble(fixture, "three", chain(["one", "two"]))
  return fixture
})

const states = (index: () => ReadonlyArray<{ name: string; state?: string; reason?: string }>) =>
  Object.fromEntries(index().map(({ name, state, reason }) => [name, reason ? `${state}: ${reason}` : state]))

describe("an ensemble", () => {
  it.live("answers what a chain of its models answers by hand", () =>
    Effect.gen(function* () {
      const { registry, index, isReady } = yield* open(yield* three)
      const [[one], [two], [all]] = [registry.versions("one"), registry.versions("two"), registry.versions("three")]
      if (one === undefined || two === undefined || all === undefined) throw new Error(JSON.stringify(index()))
      const rows = Tensor.make("FP32", [3, 1], Float32Array.of(1, -5, 0.25))
      const byHand = yield* callModel(two, yield* callModel(one, [rows]))
      const response = yield* callModel(all, [rows])
      expect(response.map(({ shape, data }) => [shape, data])).toEqual(byHand.map(({ shape, data }) => [shape, data]))
      expect(response[0]?.data).toEqual(Float32Array.of(4, -2, 3.25))
      expect(all.description.statistics).toMatchObject({ success: { count: 1 }, inferenceCount: 3, executionCount: 1 })
      expect(one.description.statistics).toMatchObject({ success: { count: 2 }, inferenceCount: 6, executionCount: 2 })
      expect(isReady()).toBe(true)
    }),
  )

  it.live("is shown as it is configured, with nothing that executes", () =>
    Effect.gen(function* () {
      const { registry, configuration } = yield* open(yield* three)
      const [all] = registry.versions("three")
      expect(all?.description).toMatchObject({ platform: "ensemble", version: "1", maxBatchSize: 4 })
      expect(all?.life.instanceGroups()).toEqual([])
      expect(configuration(all)).toMatchObject({
        name: "three",
        platform: "ensemble",
        backend: "",
        versionPolicy: { policyChoice: { case: "latest", value: { numVersions: 1 } } },
        instanceGroup: [],
        schedulingChoice: { case: "ensembleScheduling", value: { step: [{ modelName: "one" }, { modelName: "two" }] } },
      })
      const { optimization, modelTransactionPolicy } = configuration(all) ?? {}
      expect([optimization, modelTransactionPolicy]).toMatchObject([undefined, { decoupled: false }])
    }),
  )

  it.live("may be made of the sum and the difference, of versions, and of other ensembles", () =>
    Effect.gen(function* () {
      const fixture = yield* three
      fixture.adding("many", 1, 100, "version_policy { all {} }")
      fixture.adding("many", 2, 200, "version_policy { all {} }")
      fixture.write("addsub/1/model.onnx", addSub("FP32", ["n", 1]))
      writeEnsemble(
        fixture,
        "old",
        chain(["many", "three"], undefined, "model_version: 1").replace(
          'model_name: "three" model_version: 1',
          'model_name: "three"',
        ),
      )
      writeEnsemble(
        fixture,
        "graph",
        `platform: "ensemble" max_batch_size: 2 ${X} ${Y} output { name: "Z" data_type: TYPE_FP32 dims: 1 }
        ensemble_scheduling {
          step { model_name: "addsub" model_version: -1
            input_map { key: "A" value: "old" } input_map { key: "B" value: "new" }
            output_map { key: "SUM" value: "Y" } output_map { key: "DIFFERENCE" value: "Z" } }
          step { model_name: "old" model_version: -1
            input_map { key: "X" value: "X" } output_map { key: "Y" value: "old" } }
          step { model_name: "many" model_version: -1
            input_map { key: "X" value: "X" } output_map { key: "Y" value: "new" } }
        }`,
      )
      const { registry, index } = yield* open(fixture)
      const [graph] = registry.versions("graph")
      if (graph === undefined) throw new Error(JSON.stringify(index()))
      const outputs = yield* callModel(graph, [Tensor.make("FP32", [1, 1], Float32Array.of(1))])
      expect(outputs.map(({ data }) => [...data])).toEqual([[1 + 103 + 1 + 200], [1 + 103 - (1 + 200)]])
    }),
  )

  it.live("may be made of models in code, and of decoupled scripts, whose responses are its own", () =>
    Effect.gen(function* () {
      Reflect.set(globalThis, "make", Tensor.make)
      class Double extends Model.Service<Double>()("double", {
        inputs: { X: Tensor.FP32(1) },
        outputs: { Y: Tensor.FP32(1) },
        maxBatchSize: 4,
      }) {}
      const inCode = yield* Layer.build(Model.each(Double, ({ X }) => ({ Y: Tensor.map(X, (x) => x * 2) })))
      const fixture = yield* repository
      fixture.write(
        "count/1/model.js",
        `export default { execute: function* ({ inputs: { X } }) {
          for (let i = 1; i <= X.data[0]; i++) yield { Y: globalThis.make("FP32", [1, 1], Float32Array.of(i)) }
        } }`,
      )
      fixture.write("count/config.pbtxt", `max_batch_size: 4 model_transaction_policy { decoupled: true } ${X} ${Y}`)
      writeEnsemble(fixture, "doubled", chain(["count", "double"]))
      const { registry, index, configuration } = yield* open(fixture, {}, [Context.get(inCode, Double).model])
      const [doubled] = registry.versions("doubled")
      if (doubled === undefined) throw new Error(JSON.stringify(index()))
      expect(doubled.calls.decoupled).toBe(true)
      expect(configuration(doubled)).toMatchObject({ modelTransactionPolicy: { decoupled: true } })
      const request = {
        id: "",
        inputs: [Tensor.make("FP32", [1, 1], Float32Array.of(3))],
        rows: 1,
        parameters: {},
        deadline: undefined,
      }
      const responses = yield* Stream.runCollect(stream(doubled.calls, request))
      expect(responses.map(({ outputs }) => outputs[0]?.data[0])).toEqual([2, 4, 6])
    }),
  )
})

describe("an ensemble is UNAVAILABLE, with the reason,", () => {
  const step = (model: string, inputs: Record<string, string>, outputs: Record<string, string>) => {
    const map = (name: string, pairs: Record<string, string>) =>
      Object.entries(pairs).map(([key, value]) => `${name} { key: "${key}" value: "${value}" }`)
    return `step { model_name: "${model}" ${map("input_map", inputs).join(" ")} ${map("output_map", outputs).join(" ")} }`
  }
  const steps = (...all: ReadonlyArray<string>) =>
    `platform: "ensemble" max_batch_size: 4 ${X} ${Y} ensemble_scheduling { ${all.join(" ")} }`

  const problems = [
    [
      "no such model",
      chain(["one", "nobody"]),
      "ensemble $e contains models that are not available or ambiguous: nobody",
    ],
    [
      "no such version",
      chain(["one"], undefined, "model_version: 7"),
      "ensemble '$e' depends on 'one' whose required version 7 is not loaded.",
    ],
    [
      "fewer rows",
      chain(["few"]),
      "ensemble $e allows maximum batch size 4, but it contains model few which only allows maximum batch size to be 2",
    ],
    [
      "no such input",
      steps(step("one", { X: "X", Z: "X" }, { Y: "Y" })),
      "in ensemble $e, ensemble tensor X is mapping to non-existing input Z in model one",
    ],
    [
      "an input that is not mapped",
      steps(step("wide", { A: "X" }, { SUM: "Y" })),
      "in ensemble $e, ensemble tensor X: inconsistent shape: [-1,1] is inferred from model $e while [-1,2] is inferred from model wide",
    ],
    [
      "an input that nothing is mapped to",
      steps(step("wide", { B: "t" }, { SUM: "Y" }), step("one", { X: "X" }, { Y: "t" })),
      "in ensemble $e, input A in model wide is not mapped to any ensemble tensors",
    ],
    [
      "no such output",
      steps(step("one", { X: "X" }, { Y: "Y", Z: "t" }), step("one", { X: "t" }, { Y: "Y2" })).replace(
        Y,
        `${Y} output { name: "Y2" data_type: TYPE_FP32 dims: 1 }`,
      ),
      "in ensemble $e, ensemble tensor t is mapped from non-existing output Z in model one",
    ],
    [
      "other datatypes",
      steps(step("one", { X: "X" }, { Y: "t" }), step("whole", { A: "t", B: "t" }, { SUM: "Y" })),
      "in ensemble $e, ensemble tensor t: inconsistent data type: TYPE_FP32 is inferred from model one while TYPE_INT32 is inferred from model whole",
    ],
    ["itself", chain(["SELF"]), "circular dependency between ensembles: $e -> ... -> $e -> $e"],
  ] as const

  // All of them in one repository, whose models are loaded once.
  it.live("any invalid step", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      const one = "instance_group { count: 1 }"
      fixture.adding("one", 1, 1, one)
      fixture.write("wide/1/model.onnx", addSub("FP32", ["n", 2]))
      fixture.write("wide/config.pbtxt", one)
      fixture.write("whole/1/model.onnx", addSub("INT32", ["n", 1]))
      fixture.write("whole/config.pbtxt", one)
      fixture.adding("few", 1, 1, `max_batch_size: 2 ${one}`)
      const name = (index: number) => `e${index}`
      for (const [index, [, config]] of problems.entries()) {
        writeEnsemble(fixture, name(index), config.replaceAll("SELF", name(index)))
      }
      const { index, isReady } = yield* open(fixture)
      expect(isReady()).toBe(false)
      const expected = problems.map(([, , reason], index) => [
        name(index),
        `UNAVAILABLE: ${reason.replaceAll("$e", name(index))}`,
      ])
      expect(states(index)).toMatchObject(Object.fromEntries(expected))
    }),
  )

  it.live("with a circle of several, of which none is loaded", () =>
    Effect.gen(function* () {
      const fixture = yield* three
      writeEnsemble(fixture, "a", chain(["b"]))
      writeEnsemble(fixture, "b", chain(["one", "a"]))
      writeEnsemble(fixture, "c", chain(["a"]))
      expect(states((yield* open(fixture)).index)).toEqual({
        a: "UNAVAILABLE: circular dependency between ensembles: a -> ... -> b -> a",
        b: "UNAVAILABLE: circular dependency between ensembles: b -> ... -> a -> b",
        c: "UNAVAILABLE: ensemble 'c' depends on 'a' which has no loaded version. Model 'a' loading failed with error: circular dependency between ensembles: a -> ... -> b -> a",
        one: "READY",
        two: "READY",
        three: "READY",
      })
    }),
  )

  it.live("with a model that cannot be loaded", () =>
    Effect.gen(function* () {
      const fixture = yield* three
      fixture.write("two/1/model.onnx", "no model")
      const { index, isReady } = yield* open(fixture)
      expect(states(index)["three"]).toMatch(
        /^UNAVAILABLE: ensemble 'three' depends on 'two' which has no loaded version\. Model 'two' loading failed with error: version 1 is at UNAVAILABLE state: Internal: .* is not an ONNX model: .*;$/,
      )
      expect(isReady()).toBe(false)
    }),
  )
})

describe("loading and unloading", () => {
  it.effect("follows the directories where they are looked at", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      fixture.adding("one", 1, 1, "instance_group { count: 1 }")
      writeEnsemble(fixture, "three", chain(["one", "two"]))
      const { index, call, isReady, registry } = yield* open(fixture, { control: "poll", pollInterval: "1 second" })
      expect(states(index)["three"]).toContain("contains models that are not available or ambiguous: two")
      expect(isReady()).toBe(false)
      const pollUntil = Effect.fnUntraced(function* (isDone: () => boolean) {
        const done = Promise.withResolvers<void>()
        const stop = registry.onChange(() => isDone() && done.resolve())
        yield* TestClock.adjust("1 second")
        yield* Effect.promise(() => done.promise)
        stop()
      })
      fixture.adding("two", 1, 2, "instance_group { count: 1 }")
      yield* pollUntil(() => states(index)["three"] === "READY")
      expect(isReady()).toBe(true)
      expect(yield* call("three")).toBe(3)
      fixture.remove("two")
      yield* pollUntil(() => states(index)["three"] !== "READY")
      expect((yield* Effect.flip(call("three")))._tag).toBe("ModelNotFound")
    }),
  )

  it.live("answers that it keeps are those of the models that it has", () =>
    Effect.gen(function* () {
      const fixture = yield* three
      writeEnsemble(fixture, "three", chain(["one", "two"], "max_batch_size: 4 response_cache { enable: true }"))
      const { load, call, registry } = yield* open(fixture, explicit)
      yield* load("three")
      const counts = () => {
        const { cacheHit, executionCount } = registry.versions("three")[0]?.description.statistics ?? {}
        return [cacheHit?.count, executionCount]
      }
      expect([yield* call("three"), yield* call("three"), counts()]).toEqual([3, 3, [1, 1]])
      fixture.write("two/1/model.onnx", plus(10))
      yield* load("two")
      expect([yield* call("three"), counts()]).toEqual([11, [1, 2]])
    }),
  )

  it.live("labels of its outputs are those of the models that it has", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      const labelled = `max_batch_size: 4 instance_group { count: 1 } ${X}
        output { name: "Y" data_type: TYPE_FP32 dims: 1 label_filename: "labels.txt" }`
      fixture.adding("one", 1, 1, labelled)
      fixture.write("one/labels.txt", "cat")
      writeEnsemble(fixture, "outer", chain(["inner"]))
      writeEnsemble(fixture, "inner", chain(["one"]))
      const { load, registry } = yield* open(fixture, explicit)
      yield* load("outer")
      const labels = () => registry.versions("outer")[0]?.description.signature.outputs[0]?.labels
      expect(labels()).toEqual(["cat"])
      fixture.write("one/labels.txt", "dog")
      yield* load("one")
      expect(labels()).toEqual(["dog"])
    }),
  )

  it.live("models in code that it consists of may be loaded, replaced and unloaded", () =>
    Effect.gen(function* () {
      class Added extends Model.Service<Added>()("added", {
        inputs: { X: Tensor.FP32(1) },
        outputs: { Y: Tensor.FP32(1) },
        maxBatchSize: 4,
      }) {}
      const adding = (amount: number) =>
        Effect.map(
          Layer.build(Model.each(Added, ({ X }) => ({ Y: Tensor.map(X, (x) => x + amount) }))),
          (context) => Context.get(context, Added).model,
        )
      const fixture = yield* repository
      writeEnsemble(fixture, "e", chain(["added", "added"]))
      const { registry, index, call } = yield* open(fixture)
      expect(states(index)["e"]).toBe(
        "UNAVAILABLE: ensemble e contains models that are not available or ambiguous: added",
      )
      registry.serve("added", [ModelVersion.ready(yield* adding(1))])
      expect([states(index)["e"], yield* call("e")]).toEqual(["READY", 2])
      registry.serve("added", [ModelVersion.ready(yield* adding(10))])
      expect(yield* call("e")).toBe(20)
      registry.serve("added", [])
      expect((yield* Effect.flip(call("e")))._tag).toBe("ModelNotFound")
    }),
  )

  it.live("an ensemble loads its models, and unloads them on request", () =>
    Effect.gen(function* () {
      const { load, unload, index, call } = yield* open(yield* three, explicit)
      yield* load("three")
      expect(states(index)).toEqual({ one: "READY", two: "READY", three: "READY" })
      expect(yield* call("three")).toBe(3)
      yield* unload("three")
      expect(states(index)).toMatchObject({ one: "READY", two: "READY" })
      yield* load("three")
      yield* unload("three", true)
      const gone = yield* Effect.flip(call("one"))
      expect(gone._tag).toBe("ModelNotFound")
      yield* load("three")
      expect(yield* call("three")).toBe(3)
    }),
  )

  it.live("reports a problem in its directory once, although it is read again with its models", () =>
    Effect.gen(function* () {
      const fixture = yield* three
      fixture.write("three/odd/.keep", "")
      const received: Array<unknown> = []
      const logger = Logger.make(({ message }) => void received.push(message))
      yield* Effect.provide(open(fixture), Logger.layer([logger]))
      expect(received).toEqual([[expect.stringContaining("Model 'three': directory 'odd' is ignored")]])
    }),
  )

  it.live("models that were requested by name, or belong to another ensemble, stay", () =>
    Effect.gen(function* () {
      const fixture = yield* three
      fixture.adding("four", 1, 4)
      writeEnsemble(fixture, "other", chain(["two", "four"]))
      const { load, unload, call, registry } = yield* open(fixture, explicit)
      yield* load("one")
      yield* load("three")
      yield* load("other")
      yield* unload("three", true)
      expect(registry.models.map(({ description: { name } }) => name).toSorted()).toEqual([
        "four",
        "one",
        "other",
        "two",
      ])
      expect(yield* call("other")).toBe(6)
      yield* unload("other", true)
      expect(registry.models.map(({ description: { name } }) => name)).toEqual(["one"])
    }),
  )

  it.live("without one of its models it is not there, until that is loaded again", () =>
    Effect.gen(function* () {
      const { load, unload, index, call, isReady } = yield* open(yield* three, explicit)
      yield* load("three")
      yield* unload("two")
      expect(states(index)["three"]).toBe("UNAVAILABLE: ensemble 'three' depends on 'two' which has no loaded version")
      expect((yield* Effect.flip(call("three")))._tag).toBe("ModelNotFound")
      // As of a model that was unloaded.
      expect(isReady()).toBe(true)
      yield* load("two")
      expect(states(index)).toEqual({ one: "READY", two: "READY", three: "READY" })
      expect(yield* call("three")).toBe(3)
      // Unless the model itself was unloaded.
      yield* unload("three")
      yield* unload("two")
      yield* load("two")
      expect((yield* Effect.flip(call("three")))._tag).toBe("ModelNotFound")
    }),
  )

  it.live("a load of it is done ahead of a later unload of its models, and each of them behind an earlier one", () =>
    Effect.gen(function* () {
      const fixture = yield* three
      writeEnsemble(fixture, "four", chain(["three", "one"]))
      const started = Promise.withResolvers<void>()
      const opened = Promise.withResolvers<void>()
      Object.assign(globalThis, { started, opened })
      fixture.remove("two")
      fixture.write("two/config.pbtxt", `max_batch_size: 4 ${X} ${Y}`)
      fixture.write(
        "two/1/model.js",
        `export default {
          initialize: () => { started.resolve(); return opened.promise },
          execute: (requests) => requests.map(({ inputs }) => ({ Y: inputs.X })),
        }`,
      )
      const { load, unload, index } = yield* open(fixture, explicit)
      yield* Effect.addFinalizer(() => Effect.sync(opened.resolve))
      const first = yield* Effect.forkChild(load("four"), { startImmediately: true })
      yield* Effect.promise(() => started.promise)
      yield* Effect.promise(() => expect.poll(() => states(index)).toMatchObject({ one: "READY", two: "LOADING" }))
      const others = yield* Effect.forkChild(
        Effect.all([unload("one"), load("three"), unload("three", true), load("four")], { concurrency: "unbounded" }),
        { startImmediately: true },
      )
      opened.resolve()
      yield* Fiber.join(first)
      yield* Fiber.join(others)
      yield* load("four")
      expect(states(index)).toEqual({ four: "READY", one: "READY", three: "READY", two: "READY" })
    }),
  )

  it.live("a load of it fails with the reason where one of its models cannot be loaded, and works once that can", () =>
    Effect.gen(function* () {
      const fixture = yield* three
      fixture.write("two/1/model.onnx", "no model")
      const { load, index, call, isReady } = yield* open(fixture, explicit)
      const failed = yield* Effect.flip(load("three"))
      expect(failed).toMatchObject({
        _tag: "InvalidRequest",
        message: expect.stringMatching(
          /^load failed for model 'three': ensemble 'three' depends on 'two' which has no loaded version\. Model 'two' loading failed with error: version 1 is at UNAVAILABLE state: Internal: .*;$/,
        ),
      })
      expect(states(index)).toMatchObject({ one: "READY", two: expect.stringMatching(/is not an ONNX model/) })
      expect(isReady()).toBe(false)
      fixture.write("two/1/model.onnx", plus(5))
      yield* load("two")
      expect(yield* call("three")).toBe(6)
      expect(isReady()).toBe(true)
    }),
  )

  it.live("it calls the replacement of a model from then on, without failures under traffic", () =>
    Effect.gen(function* () {
      const fixture = yield* three
      const { load, call } = yield* open(fixture, explicit)
      yield* load("three")
      const seen = new Set<unknown>()
      const traffic = yield* Effect.forkChild(
        Effect.forever(
          Effect.map(
            Effect.all([call("three"), call("three"), call("three")], { concurrency: "unbounded" }),
            (responses) => responses.forEach((value) => seen.add(value)),
          ),
        ),
      )
      for (const amount of [10, 20, 30]) {
        fixture.write("two/1/model.onnx", plus(amount))
        yield* load("two")
        expect(yield* call("three")).toBe(1 + amount)
      }
      expect(traffic.pollUnsafe()).toBeUndefined()
      yield* Fiber.interrupt(traffic)
      expect([...seen].every((value) => [3, 11, 21, 31].includes(Number(value)))).toBe(true)
    }),
  )

  it.live("a model that does not fit any more takes it away, and brings it back", () =>
    Effect.gen(function* () {
      const fixture = yield* three
      const { load, index, call } = yield* open(fixture, explicit)
      yield* load("three")
      fixture.write("two/config.pbtxt", "max_batch_size: 2")
      yield* load("two")
      expect(states(index)["three"]).toBe(
        "UNAVAILABLE: ensemble three allows maximum batch size 4, but it contains model two which only allows maximum batch size to be 2",
      )
      expect((yield* Effect.flip(load("three"))).message).toContain("allows maximum batch size 4")
      fixture.write("two/config.pbtxt", "max_batch_size: 8")
      yield* load("two")
      expect(yield* call("three")).toBe(3)
    }),
  )

  it.live("an ensemble that is loaded again with others of its steps takes over, and a bad one does not", () =>
    Effect.gen(function* () {
      const fixture = yield* three
      fixture.adding("four", 1, 4)
      const { load, call, registry } = yield* open(fixture, explicit)
      yield* load("three")
      writeEnsemble(fixture, "three", chain(["one", "two", "four"]))
      yield* load("three")
      expect(yield* call("three")).toBe(7)
      writeEnsemble(fixture, "three", chain(["one", "nobody"]))
      const failed = yield* Effect.flip(load("three"))
      expect(failed.message).toContain("contains models that are not available or ambiguous: nobody")
      expect(yield* call("three")).toBe(7)
      const before = registry.versions("three")
      writeEnsemble(fixture, "three", chain(["one", "two", "four"]))
      yield* load("three")
      expect(registry.versions("three")).toEqual(before)
    }),
  )

  it.live("may come with its configuration", () =>
    Effect.gen(function* () {
      const { load, call } = yield* open(yield* three, explicit)
      const config = JSON.stringify({
        platform: "ensemble",
        max_batch_size: 4,
        input: [{ name: "X", data_type: "TYPE_FP32", dims: [1] }],
        output: [{ name: "Y", data_type: "TYPE_FP32", dims: [1] }],
        ensemble_scheduling: {
          step: [{ model_name: "two", model_version: -1, input_map: { X: "X" }, output_map: { Y: "Y" } }],
        },
      })
      yield* load("three", { config })
      expect(yield* call("three")).toBe(2)
    }),
  )
})
