/** Directories as models that a registry has; with real files and the real ONNX Runtime, without a port (C33, C34). */
import { KeyedLock } from "@nereid/core/internal/lifecycle/KeyedLock"
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Logger, Result, Scope } from "effect"
import { TestClock } from "effect/testing"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { Model, Tensor } from "@nereid/core"
import type { LoadOverrides } from "@nereid/core/internal/lifecycle/ModelRepository"
import { plus, repository } from "../../../test/fixtures/repository.ts"
import { open } from "./Repository.fixture.ts"
import * as Repository from "./Repository.ts"

const explicit = { control: "explicit" } as const

/**
 * Waits until the model has this many sessions, each in a thread; does not wait if the system does not list threads.
 */
const sessions = (model: string, count: number) =>
  Effect.promise(() => expect.poll(() => threads(model) ?? count, { timeout: 10_000 }).toBe(count))

/** Returns the threads with the names of the model's instances. */
const threads = (model: string) => {
  if (!existsSync("/proc/self/task")) return undefined
  const names = readdirSync("/proc/self/task").map((id) => {
    try {
      return readFileSync(`/proc/self/task/${id}/comm`, "utf8")
    } catch {
      return "" // It has ended meanwhile.
    }
  })
  return names.filter((name) => name.startsWith(`${model}_`)).length
}

/** Runs until the scope closes. */
const inCode = Effect.fnUntraced(function* (name: string) {
  class Code extends Model.Service<Code>()(name, { inputs: { X: Tensor.FP32(1) }, outputs: { X: Tensor.FP32(1) } }) {}
  const { model } = yield* Effect.provideContext(Code, yield* Layer.build(Model.batch(Code, ({ X }) => ({ X }))))
  return model
})

const refusing = `export default {
  initialize: ({ modelInstanceName }) => {
    if (modelInstanceName === "m_0_2") throw new Error("no third one")
  },
  execute: (requests) => requests.map(({ inputs: { X } }) => ({ Y: X })),
}
`

describe("at the start", () => {
  it.live("all models are there, by their configurations or without", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      fixture.adding("bare", 1, 10)
      fixture.adding("configured", 1, 20, 'name: "configured" platform: "onnxruntime_onnx" max_batch_size: 8')
      const { index, call, registry, configuration, isReady } = yield* open(fixture)
      expect(index()).toEqual([
        { name: "bare", version: "1", state: "READY", reason: "" },
        { name: "configured", version: "1", state: "READY", reason: "" },
      ])
      expect([yield* call("bare"), yield* call("configured")]).toEqual([10, 20])
      const [[bare], [configured]] = [registry.versions("bare"), registry.versions("configured")]
      expect(bare?.description).toMatchObject({ maxBatchSize: 4, platform: "onnxruntime_onnx" })
      expect(bare?.life.instanceGroups()).toMatchObject([{ count: 2 }])
      expect(configured?.description.maxBatchSize).toBe(8)
      expect(configuration(configured)).toMatchObject({ maxBatchSize: 8, name: "configured" })
      expect(isReady()).toBe(true)
    }),
  )

  it.live("serves the versions of the policy, and the highest by default", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      for (const version of [1, 2, 10]) fixture.adding("latest", version, version)
      for (const version of [1, 2, 10])
        fixture.adding("two", version, version, "version_policy { latest { num_versions: 2 } }")
      for (const version of [1, 2, 10]) fixture.adding("all", version, version, "version_policy { all {} }")
      for (const version of [1, 2, 10]) {
        fixture.adding("specific", version, version, "version_policy { specific { versions: [1, 2] } }")
      }
      // None of these is a version.
      for (const name of ["0", "01", "x", "-1"]) fixture.write(`latest/${name}/model.onnx`, plus(99))
      fixture.write("latest/11", "a file")
      const { registry, call } = yield* open(fixture)
      const versions = (name: string) => registry.versions(name).map(({ description: { version } }) => version)
      expect([versions("latest"), versions("two"), versions("all"), versions("specific")]).toEqual([
        ["10"],
        ["2", "10"],
        ["1", "2", "10"],
        ["1", "2"],
      ])
      expect([yield* call("all"), yield* call("all", "2"), yield* call("specific")]).toEqual([10, 2, 2])
    }),
  )

  it.live("ignores other files in a repository, and follows links", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      fixture.adding("plain", 1, 1, "version_policy { specific { versions: [ 1, 9 ] } }")
      fixture.write("plain/warmup/x", "")
      fixture.write("plain/configs/other.pbtxt", "")
      fixture.write("plain/notes.txt", "")
      for (const name of ["0", "02", "x", ".5"]) fixture.write(`plain/${name}/model.onnx`, plus(99))
      fixture.write("a file", "")
      fixture.write(".git/config", "")
      fixture.write("node_modules/package/index.js", "")
      fixture.write("elsewhere/7/model.onnx", plus(7))
      fixture.link("plain", "linked")
      fixture.link("nowhere", "dangling")
      fixture.link("elsewhere/7", "version/3")
      fixture.link("elsewhere/7/model.onnx", "file/1/model.onnx")
      const logged: Array<unknown> = []
      const logger = Logger.make(({ message }) => void logged.push(message))
      const { index, call } = yield* Effect.provide(open(fixture), Logger.layer([logger]))
      const entries = index().map(({ name, version, state }) => `${name} ${version} ${state}`)
      expect(entries).toEqual([
        "dangling undefined UNAVAILABLE",
        "elsewhere 7 READY",
        "file 1 READY",
        "linked 1 READY",
        "plain 1 READY",
        "version 3 READY",
      ])
      expect([yield* call("linked"), yield* call("version"), yield* call("file")]).toEqual([1, 7, 7])
      expect(logged.flat()).toContain(
        "version 9 is specified for model 'plain', but the version directory is not present",
      )
      const warnings = logged.flat().filter((message) => String(message).startsWith("Model 'plain'"))
      expect(warnings.map(String).toSorted()).toEqual(
        ["0", "02", "x"].map(
          (name) =>
            `Model 'plain': directory '${name}' is ignored: a version is a number above 0 without leading zeros`,
        ),
      )
    }),
  )

  it.live(
    "with partialModelLoad, a version that cannot be completed leaves the others, at the start; later, what was there stays",
    () =>
      Effect.gen(function* () {
        const fixture = yield* repository
        const all = "version_policy { all {} }"
        fixture.adding("m", 1, 1, all)
        fixture.write("m/2/model.onnx", "no model")
        fixture.adding("other", 1, 1, all)
        const { index, call, load } = yield* open(fixture, { control: "explicit", load: ["*"], partialModelLoad: true })
        const junk = expect.stringMatching(/\/m\/2\/model\.onnx is not an ONNX model: /)
        expect(index()).toEqual([
          { name: "m", version: "1", state: "READY", reason: "" },
          { name: "m", version: "2", state: "UNAVAILABLE", reason: junk },
          { name: "other", version: "1", state: "READY", reason: "" },
        ])
        expect(yield* call("m")).toBe(1)
        fixture.adding("m", 2, 22)
        yield* load("m")
        expect([yield* call("m"), yield* call("m", "1")]).toEqual([22, 1])
        fixture.write("other/2/model.onnx", "no model")
        fixture.adding("other", 1, 10)
        expect((yield* Effect.flip(load("other"))).message).toMatch(
          /^load failed for model 'other': version 2 is at UNAVAILABLE state: .*\/2\/model\.onnx is not an ONNX model: .*;$/,
        )
        expect(yield* call("other")).toBe(1)
      }),
  )

  it.live("an unreadable file fails only its model, at start and later", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      fixture.adding("good", 1, 1)
      // A link to itself is unreadable for any user.
      fixture.link("circle/1/model.onnx", "circle/1/model.onnx")
      fixture.write("folder/1/model.onnx/x", "")
      fixture.write("folder/config.pbtxt", "")
      const { index, isReady, load, call } = yield* open(fixture, { ...explicit, load: ["*"] })
      expect(index()).toEqual([
        { name: "circle", version: "1", state: "UNAVAILABLE", reason: expect.stringContaining("ELOOP") },
        { name: "folder", version: "1", state: "UNAVAILABLE", reason: expect.stringContaining("it is a directory") },
        { name: "good", version: "1", state: "READY", reason: "" },
      ])
      expect(isReady()).toBe(false)
      const { message } = yield* Effect.flip(load("circle"))
      expect(message).toMatch(
        /^load failed for model 'circle': version 1 is at UNAVAILABLE state: Internal: cannot read .*ELOOP/,
      )
      expect(yield* call("good")).toBe(1)
    }),
  )

  it.live("a bad model is unavailable with its reason, and the others are there", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      fixture.adding("good", 1, 1)
      fixture.adding("text", 1, 1, 'max_batch_size: 2\ninput {\n  nam: "X"\n}')
      fixture.adding("batch", 1, 1, "max_batch_size: -1")
      fixture.adding("shape", 1, 1, "max_batch_size: 2 input { name: 'X' data_type: TYPE_FP32 dims: 7 }")
      fixture.write("broken/1/model.onnx", "no model")
      fixture.write("empty/1/readme.txt", "nothing here")
      fixture.write("python/1/other.py", "")
      fixture.write("python/config.pbtxt", 'backend: "python"')
      fixture.write("rewritten/1/model.ts", "export default {}")
      fixture.write("rewritten/config.pbtxt", 'backend: "python"')
      fixture.write("none/config.pbtxt", 'backend: "onnxruntime"')
      fixture.write("absent/1/weights.bin", "")
      fixture.write("absent/config.pbtxt", 'backend: "onnxruntime"')
      const { index, isReady, registry } = yield* open(fixture)
      const reasons = Object.fromEntries(index().map(({ name, state, reason }) => [name, `${state}: ${reason}`]))
      expect(reasons).toEqual({
        good: "READY: ",
        text: `UNAVAILABLE: failed to read text proto from ${fixture.path}/text/config.pbtxt:3:3: unknown field "nam" for message inference.ModelInput`,
        batch: "UNAVAILABLE: 'max_batch_size' must be non-negative value for batch",
        shape: expect.stringContaining("the model expects 2 dimensions (shape [-1,1]) but the model configuration"),
        broken: expect.stringMatching(/^UNAVAILABLE: .*model\.onnx is not an ONNX model/),
        empty:
          "UNAVAILABLE: Invalid model name: Could not determine backend for model 'empty' with no backend in model configuration. Expected model name of the form 'model.<backend_name>'.",
        python: `UNAVAILABLE: Internal: Failed to preinitialize Python stub: Python model file not found in '${fixture.path}/python/1/model.py'`,
        rewritten:
          'UNAVAILABLE: Invalid argument: to run model.ts, write backend: "nereid" instead of backend: "python" in config.pbtxt',
        none: "UNAVAILABLE: at least one version must be available under the version policy of model 'none'",
        absent: `UNAVAILABLE: Internal: unable to find '${fixture.path}/absent/1/model.onnx'`,
      })
      expect(isReady()).toBe(false)
      expect(registry.models.map(({ description: { name } }) => name)).toEqual(["good"])
    }),
  )

  it.live("an invalid model ends the start if configured, with all reasons", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      fixture.adding("good", 1, 1)
      fixture.write("broken/1/model.onnx", "no model")
      fixture.write("empty/readme.txt", "")
      const failed = yield* Effect.flip(open(fixture, { exitOnError: true }))
      expect(failed).toMatchObject({ _tag: "RepositoryError", message: expect.stringMatching(/broken: .*\n.*empty: /) })
    }),
  )

  it.live("several repositories are one, but for names that are in two of them, or in code", () =>
    Effect.gen(function* () {
      const [first, second] = [yield* repository, yield* repository]
      first.adding("one", 1, 1)
      second.adding("two", 1, 2)
      first.adding("both", 1, 3)
      second.adding("both", 1, 4)
      first.adding("code", 1, 5)
      const model = yield* inCode("code")
      const registry = ModelStore.of([model])
      const directories = [first.path, second.path] as const
      const server = { store: registry, lock: new KeyedLock() }
      const { begin, index } = yield* Repository.open({ directories, exitOnError: false })(server)
      yield* begin
      expect(index()).toMatchObject([
        { name: "both", state: "UNAVAILABLE", reason: "model appears in two or more repositories" },
        { name: "code", state: "UNAVAILABLE", reason: "a model of this name is also defined in code" },
        { name: "one", state: "READY" },
        { name: "two", state: "READY" },
      ])
      expect(registry.versions("code")).toEqual([model])
    }),
  )
})

describe("explicit control", () => {
  it.live("a model in code stays, whether or not a directory has its name", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      fixture.adding("both", 1, 5)
      const models = yield* Effect.all([inCode("both"), inCode("code")])
      const { index, load, unload, registry } = yield* open(fixture, explicit, models)
      for (const name of ["both", "code"]) {
        expect((yield* Effect.flip(load(name))).message).toContain(`'${name}'`)
        expect(yield* Effect.flip(unload(name))).toMatchObject({
          _tag: "ExecutionFailed",
          message: `failed to unload '${name}', versions that are still available: 1: the model is defined in code`,
        })
      }
      expect(registry.models).toEqual(models)
      expect(index()).toEqual([{ name: "both" }])
    }),
  )

  it.live("loads the requested models, and lists the others", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      fixture.adding("a", 1, 1)
      fixture.adding("b", 1, 2)
      const { index, call, load, unload, registry } = yield* open(fixture, { ...explicit, load: ["a"] })
      expect(index()).toEqual([{ name: "a", version: "1", state: "READY", reason: "" }, { name: "b" }])
      yield* load("b")
      expect(yield* call("b")).toBe(2)
      yield* unload("a")
      yield* Effect.promise(() =>
        expect.poll(index).toMatchObject([{ name: "a", version: "1", reason: "unloaded" }, { state: "READY" }]),
      )
      expect(registry.versions("a")).toEqual([])
      yield* load("a")
      expect(yield* call("a")).toBe(1)
      fixture.adding("later", 3, 7)
      yield* load("later")
      expect(yield* call("later", "3")).toBe(7)
    }),
  )

  it.live("'*' loads all models", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      fixture.adding("a", 1, 1)
      fixture.adding("b", 1, 2)
      const { registry } = yield* open(fixture, { ...explicit, load: ["*"] })
      expect(registry.models.map(({ description: { name } }) => name).toSorted()).toEqual(["a", "b"])
    }),
  )

  it.live.each([
    ["no", "ExecutionFailed", "failed to load 'no', failed to poll from model repository"],
    ["", "InvalidRequest", "Model name cannot be empty. Please enter a valid name to deploy."],
    ["../a", "InvalidRequest", "invalid model name '../a', model name must not contain path traversal characters"],
    ["..", "InvalidRequest", "invalid model name '..', model name must not contain path traversal characters"],
    [" ..", "InvalidRequest", "invalid model name ' ..', model name must not contain path traversal characters"],
    [" ", "InvalidRequest", "Model name cannot be empty. Please enter a valid name to deploy."],
    [
      "bad",
      "InvalidRequest",
      /^load failed for model 'bad': version 1 is at UNAVAILABLE state: Invalid argument: model 'bad', tensor 'X'.*;$/,
    ],
    [
      "text",
      "InvalidRequest",
      /^failed to load 'text', failed to poll from model repository: failed to read text proto from .*:1:1: /,
    ],
  ] as const)("of '%s' is refused", ([name, tag, message]) =>
    Effect.gen(function* () {
      const fixture = yield* repository
      fixture.adding("bad", 1, 1, "input { name: 'X' data_type: TYPE_INT8 dims: 1 } output { name: 'Y' }")
      fixture.adding("text", 1, 1, "foo: 1")
      const { load } = yield* open(fixture, explicit)
      expect(yield* Effect.flip(load(name))).toMatchObject({ _tag: tag, message: expect.stringMatching(message) })
    }),
  )

  it.live("a reload replaces, a failed one keeps, and one without a change does nothing", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      fixture.adding("m", 1, 1)
      const { call, load, registry, index, isReady } = yield* open(fixture, { ...explicit, load: ["m"] })
      const [first] = registry.versions("m")
      yield* load("m")
      expect(registry.versions("m")[0]).toBe(first)
      fixture.write("m/1/model.onnx", plus(5))
      yield* load("m")
      expect(yield* call("m")).toBe(5)
      const [second] = registry.versions("m")
      fixture.write("m/1/model.onnx", "no model")
      expect(Result.isFailure(yield* Effect.result(load("m")))).toBe(true)
      fixture.adding("m", 1, 1, "max_batch_size: -2")
      expect(Result.isFailure(yield* Effect.result(load("m")))).toBe(true)
      expect(registry.versions("m")[0]).toBe(second)
      expect([yield* call("m"), isReady()]).toEqual([5, true])
      expect(index()).toEqual([{ name: "m", version: "1", state: "READY", reason: "" }])
    }),
  )

  it.live("logs the result of each load and unload", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      fixture.adding("good", 1, 1)
      fixture.write("bad/1/model.onnx", "no ONNX file")
      const logged: Array<unknown> = []
      const logger = Logger.make(({ message, logLevel }) => void logged.push([logLevel, message].flat().join(" ")))
      const layer = Logger.layer([logger])
      const { load, unload } = yield* Effect.provide(open(fixture, { control: "explicit" }), layer)
      yield* load("good")
      yield* Effect.flip(load("bad"))
      yield* unload("good")
      expect(logged).toEqual([
        "Info Model 'good' is loaded",
        expect.stringMatching(/^Error Failed to load model bad: version 1 is at UNAVAILABLE state: /),
        "Info Model 'good' is unloaded",
      ])
    }),
  )

  it.live("the next load retries failed models, which fail again", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      fixture.adding("m", 1, 1, "version_policy { all {} }")
      fixture.write("m/2/model.onnx", "no model")
      fixture.adding("wrong", 1, 1, 'input { name: "Z" } output { name: "Y" }')
      const { call, load, registry, index, isReady } = yield* open(fixture, { ...explicit, load: ["wrong"] })
      for (const name of ["m", "wrong"]) {
        const failures = [yield* Effect.flip(load(name)), yield* Effect.flip(load(name))]
        expect(failures[1]).toEqual(failures[0])
      }
      fixture.write("m/2/model.onnx", plus(2))
      yield* load("m")
      expect([registry.versions("m").length, yield* call("m")]).toEqual([2, 2])
      expect([index()[2], isReady()]).toMatchObject([{ name: "wrong", state: "UNAVAILABLE" }, false])
    }),
  )

  it.live("a change of nothing but instances is made in place: the model, its statistics and its queue stay", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      const grouped = (groups: string) => `version_policy { all {} } instance_group [ ${groups} ]`
      fixture.adding("m", 1, 1, grouped("{ count: 1 kind: KIND_CPU }"))
      fixture.adding("m", 2, 2)
      const { call, load, registry, configuration } = yield* open(fixture, { ...explicit, load: ["m"] })
      const before = registry.versions("m")
      yield* call("m")
      const counts = () => registry.versions("m").map(({ life }) => life.instanceGroups().map(({ count }) => count))
      for (const [groups, expected] of [
        ["{ count: 3 kind: KIND_CPU }", [3]],
        ["{ count: 1 kind: KIND_CPU }, { name: 'm_more' count: 1 kind: KIND_CPU }", [1, 1]],
        ["{ count: 1 kind: KIND_CPU }", [1]],
      ] as const) {
        fixture.write("m/config.pbtxt", grouped(groups))
        yield* load("m")
        expect(registry.versions("m")).toEqual(before)
        expect(registry.versions("m").every((model, index) => model === before[index])).toBe(true)
        expect(counts()).toEqual([expected, expected])
        expect(configuration(before[1])?.instanceGroup.map(({ count }) => count)).toEqual(expected)
        expect(yield* call("m")).toBe(2)
        yield* sessions("m", expected.reduce((sum: number, count) => sum + count, 0) * 2)
      }
      expect(before[1]?.description.statistics.success.count).toBe(4)
      // With a version that comes along; and with another change, which is a reload.
      fixture.adding("m", 3, 3, grouped("{ count: 2 kind: KIND_CPU }"))
      yield* load("m")
      expect([registry.versions("m").slice(0, 2), yield* call("m")]).toEqual([before, 3])
      expect(counts()).toEqual([[2], [2], [2]])
      fixture.write("m/config.pbtxt", grouped("{ count: 2 kind: KIND_CPU }") + " max_batch_size: 2")
      yield* load("m")
      expect(registry.versions("m")[0]).not.toBe(before[0])
    }),
  )

  it.live("instances that cannot be loaded leave those that there are", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      fixture.write("m/1/model.js", refusing)
      const script = (count: number) =>
        `input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_FP32 dims: 1 }
         instance_group { count: ${count} }`
      fixture.write("m/config.pbtxt", script(2))
      const { load, registry, index, isReady } = yield* open(fixture, { ...explicit, load: ["m"] })
      const [before] = registry.versions("m")
      fixture.write("m/config.pbtxt", script(3))
      const { message } = yield* Effect.flip(load("m"))
      expect(message).toMatch(
        /^load failed for model 'm': version 1 is at UNAVAILABLE state: Internal: initialize of .* has failed: no third one;$/,
      )
      expect([registry.versions("m")[0] === before, before?.life.instanceGroups(), isReady()]).toMatchObject([
        true,
        [{ count: 2 }],
        true,
      ])
      expect(index()).toEqual([{ name: "m", version: "1", state: "READY", reason: "" }])
      fixture.write("m/config.pbtxt", script(1))
      yield* load("m")
      expect([registry.versions("m")[0] === before, before?.life.instanceGroups()]).toMatchObject([
        true,
        [{ count: 1 }],
      ])
    }),
  )

  it.live(
    "a version that comes along leaves those that are there alone, and one that goes takes no other with it",
    () =>
      Effect.gen(function* () {
        const fixture = yield* repository
        fixture.adding("m", 1, 1, "version_policy { all {} }")
        const { load, registry, index, call } = yield* open(fixture, { ...explicit, load: ["m"] })
        const [first] = registry.versions("m")
        fixture.adding("m", 2, 2)
        yield* load("m")
        expect(registry.versions("m")).toEqual([
          first,
          expect.objectContaining({ description: expect.objectContaining({ version: "2" }) }),
        ])
        const [, second] = registry.versions("m")
        fixture.remove("m/1")
        yield* load("m")
        expect(registry.versions("m")).toEqual([second])
        expect(yield* call("m")).toBe(2)
        yield* Effect.promise(() => expect.poll(() => index()[0]).toMatchObject({ version: "1", reason: "unloaded" }))
      }),
  )

  it.live("requests that were accepted are answered by the model that accepted them", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      const delayed = "max_batch_size: 4 dynamic_batching { max_queue_delay_microseconds: 50000 }"
      fixture.adding("m", 1, 1, delayed)
      const { call, load, unload } = yield* open(fixture, { ...explicit, load: ["m"] })
      const first = yield* Effect.forkChild(call("m"), { startImmediately: true })
      fixture.write("m/1/model.onnx", plus(2))
      yield* load("m")
      const second = yield* Effect.forkChild(call("m"), { startImmediately: true })
      yield* unload("m")
      const { _tag } = yield* Effect.flip(call("m"))
      expect(_tag).toBe("ModelNotFound")
      expect([yield* Fiber.join(first), yield* Fiber.join(second)]).toEqual([1, 2])
    }),
  )

  it.live(
    "a configuration may come with the request, and so may all files; the next load has the directory's again",
    () =>
      Effect.gen(function* () {
        const fixture = yield* repository
        fixture.adding("m", 1, 1)
        const { call, load, registry } = yield* open(fixture, explicit)
        yield* load("m", { config: '{"maxBatchSize":16,"instance_group":[{"count":1,"kind":"KIND_CPU"}]}' })
        expect(registry.models).toMatchObject([{ description: { maxBatchSize: 16 } }])
        expect(registry.models[0]?.life.instanceGroups()).toMatchObject([{ count: 1 }])
        const files = new Map([["7/model.onnx", plus(70)]])
        yield* load("m", { config: "{}", files })
        expect(registry.models).toMatchObject([{ description: { version: "7", maxBatchSize: 4 } }])
        expect(yield* call("m")).toBe(70)
        yield* load("m")
        expect(registry.models).toMatchObject([{ description: { version: "1" } }])
        yield* load("elsewhere", { config: "{}", files })
        expect(yield* call("elsewhere")).toBe(70)
        const refusals = yield* Effect.forEach(
          [{ config: "{" }, { config: '{"foo":1}' }, { files }, { config: "{}", files: new Map([["../x", plus(1)]]) }],
          (overrides) => Effect.map(Effect.flip(load("m", overrides)), ({ message }) => message),
        )
        expect(refusals).toEqual([
          expect.stringMatching(/^failed to load 'm', failed to poll from model repository: Invalid config override: /),
          expect.stringMatching(
            /^failed to load 'm', failed to poll from model repository: Invalid config override: .*"foo"/,
          ),
          "failed to load 'm', failed to poll from model repository: override model directory requires the parameter 'config'",
          "failed to load 'm', failed to poll from model repository: invalid file '../x', which is not below the directory of model 'm'",
        ])
        expect(yield* call("m")).toBe(1)
      }),
  )

  it.live("a request can access only files of its model, and cannot load code", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      fixture.adding("m", 1, 1)
      fixture.write("secret", "of nobody's")
      const { load } = yield* open(fixture, explicit)
      const script = new TextEncoder().encode("export default { execute: () => [] }")
      const warmUp = {
        name: "w",
        batch_size: 1,
        inputs: { X: { data_type: 11, dims: [1], input_data_file: "../../secret" } },
      }
      const overrides: ReadonlyArray<Partial<LoadOverrides>> = [
        { config: '{"backend":"onnxruntime","default_model_filename":"../../secret"}' },
        { config: '{"output":[{"name":"Y","label_filename":"../secret"}]}' },
        { config: JSON.stringify({ model_warmup: [warmUp] }) },
        { config: "{}", files: new Map([["1/model.ts", script]]) },
      ]
      const refusals = yield* Effect.forEach(overrides, (given) =>
        Effect.map(Effect.flip(load("m", given)), ({ message }) => message),
      )
      expect(refusals).toEqual([
        expect.stringContaining("file '../../secret' is not below"),
        expect.stringContaining("file '../secret' is not below"),
        expect.stringContaining("file '../../secret' is not below"),
        expect.stringContaining("a script cannot be loaded from the files of a request"),
      ])
    }),
  )

  it.live("an error names files of a request by their paths in the request, also in the index", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      const { index, load } = yield* open(fixture, explicit)
      const text = new TextEncoder().encode("no model")
      const files: ReadonlyArray<ReadonlyMap<string, Uint8Array>> = [
        new Map([["1/model.onnx", text]]),
        new Map([
          ["1", text],
          ["1/model.onnx", text],
        ]),
        new Map([["config.pbtxt", text]]),
      ]
      const messages = yield* Effect.forEach(files, (files) =>
        Effect.map(Effect.flip(load("m", { config: "{}", files })), ({ message }) => message),
      )
      expect(messages[0]).toContain("state: Internal: 1/model.onnx is not an ONNX model")
      for (const message of [...messages, ...index().map(({ reason }) => reason)]) {
        expect(message).not.toContain("nereid-model-")
      }
    }),
  )

  it.live("the index has the directories of now", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      fixture.adding("a", 1, 1)
      const { index, refresh } = yield* open(fixture, explicit)
      fixture.adding("b", 1, 1)
      yield* refresh
      expect(index()).toEqual([{ name: "a" }, { name: "b" }])
      fixture.remove("a")
      yield* refresh
      expect(index()).toEqual([{ name: "b" }])
    }),
  )
})

it.effect("polling leaves alone what is in code, though the directory of its name goes", () =>
  Effect.gen(function* () {
    const fixture = yield* repository
    fixture.adding("both", 1, 5)
    const model = yield* inCode("both")
    const { registry, index } = yield* open(fixture, { control: "poll", pollInterval: "1 minute" }, [model])
    fixture.remove("both")
    yield* TestClock.adjust("1 minute")
    yield* Effect.promise(() => expect.poll(index).toEqual([]))
    expect(registry.models).toEqual([model])
  }),
)

it.effect("polling follows what is added, changed and removed, and leaves alone what is as it was", () =>
  Effect.gen(function* () {
    const fixture = yield* repository
    fixture.adding("stays", 1, 1)
    fixture.adding("changes", 1, 2)
    fixture.adding("goes", 1, 3)
    // An unreadable model does not stop polling of the others.
    fixture.link("circle/1/model.onnx", "circle/1/model.onnx")
    const { registry, index, control } = yield* open(fixture, { control: "poll", pollInterval: "1 minute" })
    const [stays] = registry.versions("stays")
    fixture.adding("comes", 1, 4)
    fixture.adding("changes", 2, 20)
    fixture.remove("goes")
    const changed = Effect.callback<void>((resume) => {
      const unwatch = registry.onChange(() => {
        if (
          registry.models
            .map(({ description: { name, version } }) => name + version)
            .toSorted()
            .join() !== "changes2,comes1,stays1"
        )
          return
        unwatch()
        resume(Effect.void)
      })
    })
    const waiting = yield* Effect.forkChild(changed, { startImmediately: true })
    yield* TestClock.adjust("1 minute")
    yield* Fiber.join(waiting)
    expect(registry.versions("stays")[0]).toBe(stays)
    expect(index().map(({ name }) => name)).not.toContain("goes")
    expect(control).toBeUndefined()
  }),
)

it.effect("an interval of 0 disables polling", () =>
  Effect.gen(function* () {
    const fixture = yield* repository
    fixture.adding("goes", 1, 1)
    const { index } = yield* open(fixture, { control: "poll", pollInterval: 0 })
    fixture.remove("goes")
    yield* TestClock.adjust("1 hour")
    expect(index()).toMatchObject([{ name: "goes", state: "READY" }])
  }),
)

it.live("loads, unloads, reloads and requests in any order end in the last requested state, and lose no request", () =>
  Effect.gen(function* () {
    const fixture = yield* repository
    const one = "max_batch_size: 4 dynamic_batching {} instance_group { count: 1 kind: KIND_CPU }"
    fixture.adding("m", 1, 1, one)
    const scope = yield* Scope.make()
    const { call, load, unload, registry } = yield* Scope.provide(open(fixture, explicit), scope)
    let responseCount = 0
    let absent = 0
    const pending = Effect.repeat(
      Effect.match(call("m"), {
        onSuccess: (value) => {
          expect([1, 2]).toContain(value)
          responseCount += 1
        },
        onFailure: ({ _tag }) => {
          expect(_tag).toBe("ModelNotFound")
          absent += 1
        },
      }).pipe(Effect.andThen(Effect.yieldNow)),
      { until: () => isOver },
    )
    let isOver = false
    const callers = yield* Effect.forEach(Array.from({ length: 8 }), () =>
      Effect.forkChild(pending, { startImmediately: true }),
    )
    const changes = Array.from({ length: 24 }, (_, index) =>
      Effect.suspend(() => {
        fixture.write("m/1/model.onnx", plus(1 + (index % 2)))
        return index % 3 === 2 ? unload("m") : load("m")
      }),
    )
    yield* Effect.all(changes, { concurrency: 4 })
    yield* load("m")
    expect(yield* call("m")).toBe(2)
    isOver = true
    for (const caller of callers) yield* Fiber.join(caller)
    expect([responseCount > 0, absent > 0, registry.models.length]).toEqual([true, true, 1])
    yield* Scope.close(scope, Exit.void)
    yield* sessions("m", 0)
  }),
)

it.live("reads the configuration of the requested name from configs/", () =>
  Effect.gen(function* () {
    const fixture = yield* repository
    for (const name of ["a", "b"]) fixture.adding(name, 1, 1, "max_batch_size: 2")
    fixture.write("a/configs/big.pbtxt", "max_batch_size: 32")
    const { registry } = yield* open(fixture, { configName: "big" })
    expect(
      Object.fromEntries(registry.models.map(({ description: { name, maxBatchSize } }) => [name, maxBatchSize])),
    ).toEqual({
      a: 32,
      b: 2,
    })
  }),
)

it.live("a model file may have any name, and none is completed where that is turned off", () =>
  Effect.gen(function* () {
    const fixture = yield* repository
    fixture.write("named/1/weights.onnx", plus(3))
    fixture.write("named/config.pbtxt", "backend: 'onnxruntime' default_model_filename: 'weights.onnx'")
    const { call } = yield* open(fixture)
    expect(yield* call("named")).toBe(3)
    const { index } = yield* open(fixture, { autoComplete: false })
    expect(index()).toMatchObject([{ reason: expect.stringContaining("the model expects 1 inputs") }])
  }),
)

it.live("the end of the scope unloads all models", () =>
  Effect.gen(function* () {
    const fixture = yield* repository
    fixture.adding("m", 1, 1)
    const scope = yield* Scope.make()
    const { registry } = yield* Scope.provide(open(fixture), scope)
    const [model] = registry.models
    expect(model?.life.isReady()).toBe(true)
    yield* Scope.close(scope, Exit.void)
    expect(model?.life.isReady()).toBe(false)
  }),
)
