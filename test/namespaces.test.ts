/**
 * Models of one name in several repositories, over each transport: whom a name reaches, and what loads and unloads do.
 * The outcomes were measured with Triton 2.51, except those that the guide on differences lists.
 */
import { Repository } from "@nereid/repository"
import { Server } from "@nereid/server"
import { Effect, Exit, Scope } from "effect"
import { describe, expect, it, onTestFinished } from "vitest"
import { plus, repository, type RepositoryFixture } from "./fixtures/repository.ts"
import * as RepositoryClient from "./RepositoryClient.ts"

const anywhere = { host: "127.0.0.1", port: 0 } as const

const single = "data_type: TYPE_FP32 dims: 1"
const tensors = `max_batch_size: 4 input { name: "X" ${single} } output { name: "Y" ${single} }\n`

const adding = (
  amount: number,
): string => `export default { execute: (requests) => requests.map(({ inputs: { X } }) => ({
  Y: new X.constructor("FP32", X.shape, new Uint8Array(Float32Array.from(X.data, (x) => x + ${amount}).buffer)),
})) }`

const script = (fixture: RepositoryFixture, name: string, amount: number): void => {
  fixture.write(`${name}/1/model.js`, adding(amount))
  fixture.write(`${name}/config.pbtxt`, tensors)
}

const ensemble = (fixture: RepositoryFixture, name: string, of: string): void => {
  fixture.write(`${name}/1/.keep`, "")
  fixture.write(
    `${name}/config.pbtxt`,
    `platform: "ensemble" ${tensors} ensemble_scheduling { step { model_name: "${of}" model_version: -1
      input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } }`,
  )
}

const scoped = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> => {
  const scope = Scope.makeUnsafe()
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return Effect.runPromise(Scope.provide(effect, scope))
}

/** Both have `m`. Each has an ensemble of it, an own model, and an ensemble of the other's own model. */
const twoRepositories = async () => {
  const [a, b] = await Promise.all([scoped(repository), scoped(repository)])
  script(a, "m", 100)
  script(b, "m", 200)
  script(a, "only_a", 110)
  script(b, "only_b", 210)
  ensemble(a, "of_a", "m")
  ensemble(b, "of_b", "m")
  ensemble(a, "across", "only_b")
  return { a, b }
}

const ambiguous = (name: string, count = 2) =>
  `InvalidRequest: There are ${count} identifiers of model '${name}' in global map, model namespace must be provided to resolve ambiguity.`

describe.each(["HTTP", "gRPC"] as const)("over %s", (transport) => {
  const serve = async (
    fixtures: readonly [RepositoryFixture, ...ReadonlyArray<RepositoryFixture>],
    options: Partial<Repository.Options> = {},
  ) => {
    const [{ path }, ...others] = fixtures
    const directories = [path, ...others.map((other) => other.path)] as const
    const models = Repository.layer({ directories, exitOnError: false, namespaces: true, ...options })
    const server = await Server.start([], models, { http: anywhere, grpc: anywhere, metrics: anywhere })
    onTestFinished(() => server.stop())
    const client = await scoped(RepositoryClient.make[transport]({ http: server.http.port, grpc: server.grpc.port }))
    return { ...client, metrics: `http://127.0.0.1:${server.metrics.port}/metrics` }
  }

  it(
    "ensembles use the models of their own repository first, and requests for an ambiguous name are refused " +
      "(A6.namespaces.ensemble@both, A6.namespaces.ambiguous@both)",
    async () => {
      const { a, b } = await twoRepositories()
      const { infer, index, isReady, isModelReady, load, metrics } = await serve([a, b])
      expect(await Promise.all(["of_a", "of_b", "across", "only_a", "only_b"].map((name) => infer(name)))).toEqual([
        100, 200, 210, 110, 210,
      ])
      expect(await infer("m")).toBe(ambiguous("m"))
      expect(await isModelReady("m")).toBe(false)
      expect(await infer("none")).toBe("InvalidRequest: Request for unknown model: 'none' is not found")
      expect(await isReady()).toBe(true)
      const ready = { name: "m", version: "1", state: "READY", reason: "" }
      expect((await index()).filter(({ name }) => name === "m")).toEqual([ready, ready])
      expect(await load("m")).toMatch(/^Unavailable: /)
      const text = await (await fetch(metrics)).text()
      expect(text).toContain(`nv_inference_request_success{model="m",namespace="${a.path}",version="1"} 1`)
      expect(text).toContain(`nv_inference_request_success{model="m",namespace="${b.path}",version="1"} 1`)
    },
  )

  it("an ensemble of a model that two other repositories have is refused, and the others are served", async () => {
    const { a, b } = await twoRepositories()
    const c = await scoped(repository)
    ensemble(c, "of_c", "m")
    const { infer, index } = await serve([a, b, c])
    expect(await infer("of_c")).toBe(
      `ModelNotFound: Request for unknown model: '${c.path}::of_c' has no available versions`,
    )
    const entry = (await index()).find(({ name }) => name === "of_c")
    expect(entry?.reason).toContain("ensemble of_c contains models that are not available or ambiguous: m")
    expect(await infer("of_a")).toBe(100)
  })

  it(
    "a load and an unload are of all models of the name; only loaded ones are ambiguous " +
      "(A6.namespaces.control@both, A6.namespaces.unknown@both)",
    async () => {
      const { a, b } = await twoRepositories()
      const { infer, load, unload, index } = await serve([a, b], { control: "explicit" })
      const states = async (of: string) =>
        (await index())
          .filter(({ name }) => name === of)
          .map(({ state }) => state ?? "not loaded")
          .toSorted()
      expect(await infer("m")).toBe("InvalidRequest: Request for unknown model: 'm' is not found")
      expect(await load("of_b")).toBe(undefined)
      expect([await infer("of_b"), await infer("m"), await states("m")]).toEqual([200, 200, ["READY", "not loaded"]])
      expect([await load("m"), await states("m")]).toEqual([undefined, ["READY", "READY"]])
      expect([await infer("m"), await infer("of_b")]).toEqual([ambiguous("m"), 200])
      expect(await unload("m")).toBe(undefined)
      await expect.poll(() => states("m")).toEqual(["UNAVAILABLE", "UNAVAILABLE"])
      expect(await infer("m")).toBe("ModelNotFound: Identifier of model 'm' is not found in global map")
      expect(await load("none")).toBe("ExecutionFailed: failed to load 'none', failed to poll from model repository")
    },
  )

  it("files of a load belong to the only model of the name, and are refused for several", async () => {
    const { a, b } = await twoRepositories()
    const { infer, load } = await serve([a, b], { control: "explicit", load: ["*"] })
    a.adding("net", 1, 1)
    const files = { "1/model.onnx": plus(2) }
    expect(await load("net", { config: {}, files })).toBe(undefined)
    expect(await infer("net")).toBe(2)
    expect(await load("m", { config: {}, files })).toMatch(/^InvalidRequest: There are 2 identifiers of model 'm'/)
    expect(await load("new", { config: {}, files })).toBe(undefined)
    expect(await infer("new")).toBe(2)
  })

  it("with polling, a name becomes ambiguous when a second repository has it, and is reached again without", async () => {
    const { a, b } = await twoRepositories()
    const { infer } = await serve([a, b], { control: "poll", pollInterval: "20 millis" })
    expect(await infer("only_a")).toBe(110)
    script(b, "only_a", 310)
    await expect.poll(() => infer("only_a")).toBe(ambiguous("only_a"))
    a.remove("only_a")
    await expect.poll(() => infer("only_a")).toBe(310)
  })
})
