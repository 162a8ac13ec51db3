/**
 * Repository behavior over time, and the effect of each option, over each transport. Each test has separate servers,
 * with scripts as models if their content is irrelevant. Single requests are cases in conformance/.
 */
import { Model, Registry, Tensor } from "@nereid/core"
import { Repository } from "@nereid/repository"
import { Server } from "@nereid/server"
import { Effect, Exit, Scope } from "effect"
import { describe, expect, it, onTestFinished } from "vitest"
import { plus, repository, type RepositoryFixture } from "./fixtures/repository.ts"
import * as RepositoryClient from "./RepositoryClient.ts"

const anywhere = { host: "127.0.0.1", port: 0 } as const

const single = "data_type: TYPE_FP32 dims: 1"
const tensors = `max_batch_size: 4 input { name: "X" ${single} } output { name: "Y" ${single} }\n`

/** Adds a number to X; more of its execution, of a batch of `requests`, comes first. */
const adding = (amount: number, first = "", more = ""): string => `
const added = (X) => new X.constructor("FP32", X.shape, new Uint8Array(Float32Array.from(X.data, (x) => x + ${amount}).buffer))
export default {
  execute: async (requests, state) => {
    ${first}
    return requests.map(({ inputs: { X } }) => ({ Y: added(X) }))
  },
  ${more}
}`

/** Where scripts lie, no package is found. */
Reflect.set(globalThis, "core", { Effect, Model, Registry, Tensor })

/** Twice what the model "one" makes of X. */
const callingScript = `
const { Effect, Model, Registry, Tensor } = globalThis.core
export class Asks extends Model.Service()("asks", { inputs: { X: Tensor.FP32(1) }, outputs: { Y: Tensor.FP32(1) }, maxBatchSize: 4 }) {}
export const AsksLive = Model.each(Asks, Effect.map(Registry, (models) => (X) =>
  Effect.map(models.infer("one", X), ({ Y }) => ({ Y: Tensor.map(Y, (y) => y * 2) }))))`

const script = (fixture: RepositoryFixture, name: string, text: string, config = ""): void => {
  fixture.write(`${name}/1/model.js`, text)
  fixture.write(`${name}/config.pbtxt`, tensors + config)
}

/** Values that scripts, imported into this process, report; and the gate that they wait for. */
const received: Array<unknown> = []
let gate = Promise.withResolvers<void>()
Reflect.set(globalThis, "tell", (value: unknown) => received.push(value))
Reflect.set(globalThis, "hold", () => gate.promise)

const scoped = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> => {
  const scope = Scope.makeUnsafe()
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return Effect.runPromise(Scope.provide(effect, scope))
}

const onDisk = () => scoped(repository)

it("metrics are as the configuration has them (A11.metric-tags.labels@HTTP, A11.model-metrics.buckets@HTTP)", async () => {
  const fixture = await onDisk()
  fixture.write("m/1/model.js", "export default { execute: function* () {} }")
  fixture.write(
    "m/config.pbtxt",
    `${tensors} model_transaction_policy { decoupled: true }
    metric_tags { key: "team" value: "vision" } metric_tags { key: "version" value: "9" } metric_tags { key: "no label" value: "" }
    model_metrics { metric_control { metric_identifier { family: "nv_inference_first_response_histogram_ms" }
      histogram_options { buckets: [ 1, 2.5 ] } } }`,
  )
  const server = await Server.start([], Repository.layer({ directories: [fixture.path] }), {
    http: anywhere,
    grpc: false,
    metrics: anywhere,
    metricsOptions: { histogramLatencies: true },
  })
  onTestFinished(() => server.stop())
  const text = await (await fetch(`http://127.0.0.1:${server.metrics.port}/metrics`)).text()
  expect(text).toContain('nv_inference_count{model="m",team="vision",version="1"} 0\n')
  expect(text).toContain('nv_inference_request_failure{model="m",reason="OTHER",team="vision",version="1"} 0\n')
  const family = "nv_inference_first_response_histogram_ms_bucket"
  expect(text.match(new RegExp(`(?<=${family}.*le=")[^"]*`, "g"))).toEqual(["1", "2.5", "+Inf"])
})

describe.each(["HTTP", "gRPC"] as const)("over %s", (transport) => {
  const serve = async (
    fixtures: readonly [RepositoryFixture, ...ReadonlyArray<RepositoryFixture>],
    options: Partial<Repository.Options> = {},
    strictReadiness = true,
  ) => {
    received.length = 0
    gate = Promise.withResolvers()
    const [{ path }, ...others] = fixtures
    const directories = [path, ...others.map((other) => other.path)] as const
    const models = Repository.layer({ directories, exitOnError: false, ...options })
    const server = await Server.start([], models, { strictReadiness, http: anywhere, grpc: anywhere, metrics: false })
    onTestFinished(() => {
      gate.resolve()
      return server.stop()
    })
    return scoped(RepositoryClient.make[transport]({ http: server.http.port, grpc: server.grpc.port }))
  }

  const notLoaded = "Unavailable: explicit model load / unload is not allowed if polling is enabled"

  it(
    "mode none loads all there are, of several repositories, and lets nobody load (A6.mode.none@both, A6.refused.none@both, " +
      "A6.repositories@both, A6.repositories.same-name@both, A6.exit-on-error.false@both, A6.readiness.lenient@both, " +
      "A6.config-name@both, A11.completion.default@both)",
    async () => {
      const [first, second] = [await onDisk(), await onDisk()]
      script(first, "one", adding(1))
      script(second, "two", adding(2), 'parameters { key: "of" value { string_value: "all" } }')
      second.write("two/configs/own.pbtxt", `${tensors} parameters { key: "of" value { string_value: "own" } }`)
      for (const fixture of [first, second]) script(fixture, "same", adding(3))
      first.adding("bare", 1, 4)
      script(first, "wrong", adding(5), "max_batch_size: 4")
      const options = { configName: "own", defaultMaxBatchSize: 8 }
      const { infer, index, load, unload, isReady, config } = await serve([first, second], options, false)
      const reason = "model appears in two or more repositories"
      expect(await index()).toMatchObject([
        { name: "bare", version: "1", state: "READY" },
        { name: "one", version: "1", state: "READY" },
        { name: "same", state: "UNAVAILABLE", reason },
        { name: "two", version: "1", state: "READY" },
        { name: "wrong", version: "1", state: "UNAVAILABLE", reason: expect.stringContaining("is repeated") },
      ])
      expect([await infer("one"), await infer("two"), await infer("bare"), await isReady()]).toEqual([1, 2, 4, true])
      expect(await config("two")).toMatchObject({ parameters: { of: { string_value: "own" } } })
      expect(await config("bare")).toMatchObject({ max_batch_size: 8, dynamic_batching: { preferred_batch_size: [8] } })
      expect([await load("one"), await unload("one"), await infer("one")]).toEqual([notLoaded, notLoaded, 1])
    },
  )

  it(
    "mode explicit loads what it is told to, and readiness is of that (A6.mode.explicit@both, A6.mode.explicit.several@both, " +
      "A6.readiness.unloaded@both, A11.completion.off@both)",
    async () => {
      const fixture = await onDisk()
      for (const [index, name] of ["a", "b", "c"].entries()) script(fixture, name, adding(index))
      fixture.adding("bare", 1, 3)
      fixture.adding("complete", 1, 4, tensors)
      const { infer, index, load, unload, isReady } = await serve([fixture], {
        control: "explicit",
        load: ["a", "b"],
        autoComplete: false,
      })
      expect(await index()).toMatchObject([
        { name: "a", state: "READY" },
        { name: "b", state: "READY" },
        { name: "bare" },
        { name: "c" },
        { name: "complete" },
      ])
      expect((await index())[3]).toEqual({ name: "c" })
      expect(await infer("c")).toBe("ModelNotFound: Request for unknown model: 'c' is not found")
      expect([await load("complete"), await infer("complete"), await isReady()]).toEqual([undefined, 4, true])
      expect(await load("bare")).toMatch(
        /^InvalidRequest: failed to load 'bare', failed to poll from model repository: failed to open text file for read .*bare\/config\.pbtxt: No such file or directory$/,
      )
      // A model that cannot be read does not count; a version that cannot be loaded does.
      expect(await isReady()).toBe(true)
      fixture.write("bare/config.pbtxt", tensors)
      fixture.write("bare/1/model.onnx", "")
      expect(await load("bare")).toMatch(/^InvalidRequest: load failed for model 'bare': version 1 /)
      expect(await isReady()).toBe(false)
      expect([await unload("bare"), await unload("a"), await isReady()]).toEqual([undefined, undefined, true])
    },
  )

  it("* loads all models (A6.mode.explicit.all@both)", async () => {
    const fixture = await onDisk()
    for (const [index, name] of ["a", "b"].entries()) script(fixture, name, adding(index))
    const { infer } = await serve([fixture], { control: "explicit", load: ["*"] })
    expect([await infer("a"), await infer("b")]).toEqual([0, 1])
  })

  it(
    "mode poll follows the directories (A6.mode.poll.added@both, A6.mode.poll.version@both, A6.mode.poll.changed@both, " +
      "A6.mode.poll.removed@both, A6.refused.poll@both)",
    async () => {
      const fixture = await onDisk()
      for (const [index, name] of ["changes", "goes", "grows"].entries()) script(fixture, name, adding(index))
      const { infer, config, index, load, unload } = await serve([fixture], {
        control: "poll",
        pollInterval: "20 millis",
      })
      expect([await load("goes"), await unload("goes")]).toEqual([notLoaded, notLoaded])
      script(fixture, "comes", adding(7))
      fixture.write("grows/2/model.js", adding(20))
      fixture.write("changes/config.pbtxt", tensors.replace("4", "3"))
      fixture.remove("goes")
      const gone = "ModelNotFound: Request for unknown model: 'goes' is not found"
      const inferAll = () => Promise.all(["comes", "grows", "goes"].map((name) => infer(name)))
      await expect.poll(inferAll, { timeout: 10_000 }).toEqual([7, 20, gone])
      await expect.poll(() => config("changes"), { timeout: 10_000 }).toMatchObject({ max_batch_size: 3 })
      expect(await index(true)).toMatchObject([{ name: "changes" }, { name: "comes" }, { name: "grows", version: "2" }])
    },
  )

  it("mode poll reloads a model whose files beside the versions change (A6.mode.poll.beside@both)", async () => {
    const fixture = await onDisk()
    for (const name of ["changes", "stays"]) script(fixture, name, adding(1))
    const { infer, successes } = await serve([fixture], { control: "poll", pollInterval: "20 millis" })
    expect([await infer("changes"), await infer("stays")]).toEqual([1, 1])
    fixture.write("changes/notes/one.txt", "")
    await expect.poll(() => successes("changes"), { timeout: 10_000 }).toBe(0)
    expect(await successes("stays")).toBe(1)
  })

  it(
    "mode poll unloads a model that a second repository has too, and loads it again without that " +
      "(A6.mode.poll.duplicate@both)",
    async () => {
      const [first, second] = [await onDisk(), await onDisk()]
      script(first, "m", adding(1))
      const { infer, index, isReady } = await serve([first, second], { control: "poll", pollInterval: "20 millis" })
      expect(await infer("m")).toBe(1)
      script(second, "m", adding(2))
      await expect.poll(() => infer("m"), { timeout: 10_000 }).toMatch(/^ModelNotFound: /)
      const reason = "model appears in two or more repositories"
      await expect.poll(() => index(), { timeout: 10_000 }).toContainEqual(expect.objectContaining({ reason }))
      expect(await isReady()).toBe(true)
      first.remove("m")
      await expect.poll(() => infer("m"), { timeout: 10_000 }).toBe(2)
      expect(await index(true)).toMatchObject([{ name: "m", version: "1" }])
    },
  )

  it(
    "a version that cannot be loaded fails the first load of its model as a whole, or leaves the others " +
      "(A6.load.whole@both, A6.load.partial@both)",
    async () => {
      const fixture = await onDisk()
      script(fixture, "m", adding(1), "version_policy { all {} }")
      fixture.write("m/2/model.js", "export default {")
      const whole = await serve([fixture], { control: "explicit" })
      const failed = /^InvalidRequest: load failed for model 'm': version 2 is at UNAVAILABLE state: /
      expect(await whole.load("m")).toMatch(failed)
      const second = { name: "m", version: "2", state: "UNAVAILABLE", reason: expect.stringContaining("model.js") }
      const unloaded = { name: "m", version: "1", state: "UNAVAILABLE", reason: "unloaded" }
      await expect.poll(() => whole.index()).toEqual([unloaded, second])
      expect(await whole.infer("m")).toBe("ModelNotFound: Request for unknown model: 'm' has no available versions")
      expect([await whole.isReady(), await whole.isModelReady("m")]).toEqual([false, false])
      const partial = await serve([fixture], { control: "explicit", partialModelLoad: true })
      expect(await partial.load("m")).toMatch(failed)
      const first = { name: "m", version: "1", state: "READY", reason: "" }
      expect(await partial.index()).toEqual([first, second])
      expect([await partial.infer("m"), await partial.isReady()]).toEqual([1, false])
      fixture.write("m/2/model.js", adding(2))
      expect([await whole.load("m"), await whole.infer("m"), await whole.isReady()]).toEqual([undefined, 2, true])
    },
  )

  it("a server whose repository cannot be read runs and is not live (A6.exit-on-error.repository-false@both)", async () => {
    const fixture = await onDisk()
    const options = { directories: [`${fixture.path}/none`], control: "explicit" } as const
    const { index, infer, load, unload, isLive, isReady } = await serve([fixture], options, false)
    expect([await isLive(), await isReady()]).toEqual([false, false])
    const notReady = "Unavailable: Server not ready"
    expect([await load("m"), await unload("m")]).toEqual([notReady, notReady])
    await expect(index()).rejects.toThrow(notReady)
    expect(await infer("m")).toBe("ModelNotFound: Request for unknown model: 'm' is not found")
  })

  it(
    "a load may bring a configuration, which stays until the directory changes or the model is unloaded, or all files " +
      "(A6.config.override@both, A6.override.config-reverts@both, A6.files.override@both, A6.files.whole@both, A6.files.new@both, " +
      "A6.override.files-revert@both, A6.override.untouched@both)",
    async () => {
      const fixture = await onDisk()
      const own = `${tensors.replace('"Y"', '"Y" label_filename: "labels.txt"')} version_policy { all {} } instance_group { count: 1 }`
      fixture.adding("m", 1, 1, own)
      fixture.adding("m", 2, 2)
      fixture.write("m/labels.txt", "one")
      const { infer, config, index, load, unload } = await serve([fixture], { control: "explicit", load: ["m"] })
      const versions = async () => (await index(true)).map(({ name, version }) => `${name} ${version}`)
      expect([await infer("m"), await versions()]).toEqual([2, ["m 1", "m 2"]])

      const one = [{ count: 1, kind: "KIND_CPU" }]
      expect(await load("m", { config: { max_batch_size: 7, instance_group: one } })).toBe(undefined)
      expect([await infer("m"), await versions()]).toEqual([2, ["m 2"]])
      expect(await config("m")).toMatchObject({ max_batch_size: 7, output: [{ label_filename: "" }] })
      expect(await load("m")).toBe(undefined)
      expect(await load("m", { config: { max_batch_size: -1 } })).toBe(
        "InvalidRequest: failed to load 'm', failed to poll from model repository: 'max_batch_size' must be non-negative value for m",
      )
      expect(await load("m", { config: { backend: "fil" } })).toMatch(
        /^InvalidRequest: load failed for model 'm': version 2 /,
      )
      expect([await load("m"), await versions()]).toEqual([undefined, ["m 2"]])
      expect(await config("m")).toMatchObject({ max_batch_size: 7, output: [{ label_filename: "" }] })
      fixture.write("m/labels.txt", "two")
      expect(await load("m")).toBe(undefined)
      expect(await versions()).toEqual(["m 1", "m 2"])
      expect(await config("m")).toMatchObject({ max_batch_size: 4, output: [{ label_filename: "labels.txt" }] })
      const group = { count: 2, kind: "KIND_CPU" }
      expect(await load("m", { config: { instance_group: group } })).toBe(undefined)
      expect([await unload("m"), await load("m"), await versions()]).toEqual([undefined, undefined, ["m 1", "m 2"]])
      expect(await load("m", { config: { instance_group: group } })).toBe(undefined)
      expect(await config("m")).toMatchObject({ instance_group: [group] })

      const files = { "5/model.onnx": plus(5) }
      const labelled = { output: [{ name: "Y", label_filename: "labels.txt" }], instance_group: one }
      expect(await load("m", { config: labelled, files })).toMatch(/labels\.txt/)
      expect(await load("m", { config: { instance_group: one }, files })).toBe(undefined)
      expect([await infer("m"), await versions()]).toEqual([5, ["m 5"]])
      expect(await load("brought", { config: { instance_group: one }, files })).toBe(undefined)
      expect([await infer("brought"), await versions()]).toEqual([5, ["brought 5", "m 5"]])
      expect(await load("m")).toBe(undefined)
      expect([await infer("m"), await versions()]).toEqual([2, ["brought 5", "m 1", "m 2"]])
      expect(await load("brought")).toBe(
        "ExecutionFailed: failed to load 'brought', failed to poll from model repository",
      )
    },
  )

  it(
    "a reload loses no request, and one without a change does nothing (A6.reload.no-downtime@both, A6.reload.unchanged@both, " +
      "A6.reload.failed@both)",
    async () => {
      const fixture = await onDisk()
      script(fixture, "m", adding(0))
      const { infer, load, successes } = await serve([fixture], { control: "explicit", load: ["m"] })
      await infer("m")
      expect([await load("m"), await successes("m")]).toEqual([undefined, 1])
      const over = new AbortController()
      const results: Array<number | string> = []
      const requests = Promise.all(
        Array.from({ length: 4 }, async () => {
          while (!over.signal.aborted) results.push(await infer("m"))
        }),
      )
      for (const amount of [10, 20, 30]) {
        const before = results.length
        script(fixture, "m", adding(amount))
        expect(await load("m")).toBe(undefined)
        expect(await infer("m")).toBe(amount)
        await expect.poll(() => results.length).toBeGreaterThan(before)
      }
      fixture.write("m/1/model.js", "export default {")
      expect(await load("m")).toMatch(/^InvalidRequest: load failed for model 'm': version 1 is at UNAVAILABLE state: /)
      expect(await infer("m")).toBe(30)
      over.abort()
      await requests
      expect(results.filter((response) => typeof response === "string")).toEqual([])
    },
  )

  it(
    "the index shows what is on its way, and an unload answers what was accepted (A1.index.loading@both, A1.index.unloading@both, " +
      "A1.index.unloaded@both, A6.unload@both, A6.unload.in-flight@both, A12.script.finalize@both)",
    async () => {
      const fixture = await onDisk()
      const life = 'initialize: () => globalThis.hold(), finalize: () => globalThis.tell("finalized")'
      script(fixture, "m", adding(1, 'globalThis.tell("entered"); await globalThis.hold()', life))
      const { infer, index, load, unload } = await serve([fixture], { control: "explicit" })
      const loading = load("m")
      await expect.poll(() => index()).toEqual([{ name: "m", version: "1", state: "LOADING", reason: "" }])
      gate.resolve()
      expect(await loading).toBe(undefined)
      expect(await index()).toEqual([{ name: "m", version: "1", state: "READY", reason: "" }])
      gate = Promise.withResolvers()
      const accepted = infer("m", 5)
      await expect.poll(() => received).toEqual(["entered"])
      expect(await unload("m")).toBe(undefined)
      expect(await index()).toEqual([{ name: "m", version: "1", state: "UNLOADING", reason: "" }])
      expect(await infer("m")).toBe("ModelNotFound: Request for unknown model: 'm' has no available versions")
      gate.resolve()
      expect(await accepted).toBe(6)
      await expect.poll(() => index()).toEqual([{ name: "m", version: "1", state: "UNAVAILABLE", reason: "unloaded" }])
      await expect.poll(() => received).toEqual(["entered", "finalized"])
    },
  )

  it(
    "an ensemble brings its models, and takes them along where that is asked for (A6.ensemble.loads@both, " +
      "A6.unload.dependents@both, A6.unload.keeps@both)",
    async () => {
      const fixture = await onDisk()
      for (const [index, name] of ["one", "two"].entries()) script(fixture, name, adding(index + 1))
      const step = (name: string, from: string, to: string) =>
        `step { model_name: "${name}" model_version: -1 input_map { key: "X" value: "${from}" } output_map { key: "Y" value: "${to}" } }`
      fixture.write("both/1/.keep", "")
      fixture.write(
        "both/config.pbtxt",
        `${tensors} platform: "ensemble" ensemble_scheduling { ${step("one", "X", "t")} ${step("two", "t", "Y")} }`,
      )
      const { infer, index, load, unload } = await serve([fixture], { control: "explicit" })
      const names = async () => (await index(true)).map(({ name }) => name)
      expect([await load("both"), await infer("both"), await names()]).toEqual([undefined, 3, ["both", "one", "two"]])
      expect([await unload("both"), await names()]).toEqual([undefined, ["one", "two"]])
      expect([await load("both"), await load("two"), await unload("both", true)]).toEqual(Array(3).fill(undefined))
      expect(await names()).toEqual(["two"])
    },
  )

  it(
    "isReady of a script says whether its model and the server are ready, when that is asked (A6.is-ready@both, " +
      "A6.is-ready.error@both)",
    async () => {
      const fixture = await onDisk()
      const life = `initialize: () => globalThis.readiness, isReady: (ask) => ask()`
      const scripts: Array<() => unknown> = []
      Reflect.set(globalThis, "readiness", () => scripts.shift()?.())
      script(fixture, "m", adding(1, "", life))
      script(fixture, "two", adding(2, "", life), "instance_group { count: 2 }")
      const { infer, index, isModelReady, isReady } = await serve([fixture])
      const inferScript = async (name: string, ...given: ReadonlyArray<() => unknown>) => {
        scripts.push(...given)
        return isModelReady(name)
      }
      const failing = () => {
        throw new Error("no connection")
      }
      expect(await inferScript("m", () => true)).toBe(true)
      expect(await inferScript("m", () => Promise.resolve(true))).toBe(true)
      expect(await inferScript("m", () => false)).toBe(false)
      expect(await inferScript("m", () => undefined)).toBe(false)
      expect(await inferScript("m", failing)).toBe(false)
      expect(await inferScript("m", () => Promise.reject(new Error("no connection")))).toBe(false)
      expect(await isModelReady("m", "1")).toBe(false)
      const notFound = "ModelNotFound: Request for unknown model: 'm' version 2 is not found"
      expect(await isModelReady("m", "2")).toBe(transport === "HTTP" ? notFound : false)
      const yes = () => true
      expect([await inferScript("two", yes, yes), await inferScript("two", yes, () => false)]).toEqual([true, false])
      expect([await infer("m"), await isReady(), (await index(true)).length]).toEqual([1, false, 2])
      scripts.push(yes, yes, yes)
      expect(await isReady()).toBe(true)
    },
  )

  it("a model in code calls a model of the repository by name (A12.script.model@both)", async () => {
    const fixture = await onDisk()
    script(fixture, "one", adding(1))
    script(fixture, "asks", callingScript)
    const { infer } = await serve([fixture])
    expect(await infer("asks", 5)).toBe(12)
  })

  it(
    "a script has batches, or one request, answers each for itself, and knows who has left (A12.script.execute@both, " +
      "A12.script.one@both, A12.script.async@both, A12.script.error@both, A12.script.cancelled@both)",
    async () => {
      const fixture = await onDisk()
      const counting = "globalThis.tell(requests.length)"
      const bad = `if (requests.length > 1) return requests.map(({ inputs: { X } }) => X.data[0] < 0 ? new Error("below 0") : { Y: added(X) })`
      const queue = "dynamic_batching { max_queue_delay_microseconds: 60000000 preferred_batch_size: 2 }"
      script(fixture, "batches", adding(1, `${counting}; ${bad}`), queue)
      script(fixture, "alone", adding(2, counting))
      const waiting = `const [{ signal }] = requests
        const { promise, resolve } = Promise.withResolvers()
        signal.addEventListener("abort", () => { globalThis.tell("gone"); resolve() })
        globalThis.tell("waits")
        await promise`
      script(fixture, "waits", adding(3, waiting))
      const { infer } = await serve([fixture])
      const [first, second] = await Promise.all([infer("batches", 1), infer("batches", -1)])
      expect([first, second]).toEqual([2, expect.stringMatching(/^ExecutionFailed: .*below 0$/)])
      expect(received.splice(0)).toEqual([2])
      expect(await Promise.all([infer("alone"), infer("alone")])).toEqual([2, 2])
      expect(received.splice(0)).toEqual([1, 1])
      const leaving = new AbortController()
      const left = infer("waits", 0, leaving).catch(() => "left")
      await expect.poll(() => received).toEqual(["waits"])
      leaving.abort()
      await expect.poll(() => received).toEqual(["waits", "gone"])
      expect(await left).toEqual(expect.any(String))
    },
  )
})
