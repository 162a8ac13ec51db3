import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { altered } from "../../../../test/fixtures/runningModel.ts"
import { define } from "../model/Definition.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import { ModelStore } from "./ModelStore.ts"
import { ModelVersion } from "./ModelVersion.ts"
import * as PlaceholderModel from "./PlaceholderModel.ts"

const model = (name: string, version: string): RunningModel =>
  PlaceholderModel.make(define(name, { inputs: {}, outputs: {}, version: Number(version) }))

const store = ModelStore.of([model("m", "2"), model("m", "10"), model("m", "1"), model("other", "1")])

const version = (name: string, requested: string) =>
  Result.map(store.get(name, requested), (found) => found.description.version)
const refusal = (name: string, requested: string) => Result.getOrThrow(Result.flip(store.get(name, requested)))

it("returns the requested version, or the highest", () => {
  expect(version("m", "1")).toEqual(Result.succeed("1"))
  expect(version("m", "0010")).toEqual(Result.succeed("10"))
  expect(version("m", "")).toEqual(Result.succeed("10"))
  expect(store.versions("m").map((found) => found.description.version)).toEqual(["1", "2", "10"])
})

it("names an unknown model or version", () => {
  expect(refusal("foo", "")).toMatchObject({
    _tag: "ModelNotFound",
    message: "Request for unknown model: 'foo' is not found",
  })
  expect(refusal("m", "99")).toMatchObject({
    _tag: "ModelNotFound",
    message: "Request for unknown model: 'm' version 99 is not found",
  })
})

it("distinguishes unavailable models from unknown ones", () => {
  const store = ModelStore.of([model("m", "2")])
  const failed = (name: string, version: string) => {
    const known = new ModelVersion({ name, version, origin: "repository" })
    store.add(known)
    known.fail("broken")
    return known
  }
  failed("m", "1")
  const gone = failed("gone", "3")
  const refused = (name: string, version: string) => {
    const { _tag, message } = Result.getOrThrow(Result.flip(store.get(name, version)))
    return [_tag, message]
  }
  expect([store.absent("m"), store.absent("gone"), store.absent("other")]).toEqual([["1"], ["3"], []])
  expect(Result.map(store.get("m", ""), ({ description: { version } }) => version)).toEqual(Result.succeed("2"))
  const unknown = (name: string, problem: string) => `Request for unknown model: '${name}' ${problem}`
  for (const version of ["1", "001"]) {
    expect(refused("m", version)).toEqual(["ModelNotReady", unknown("m", "version 1 is not at ready state")])
  }
  expect(refused("m", "4")).toEqual(["ModelNotFound", unknown("m", "version 4 is not found")])
  expect(refused("gone", "")).toEqual(["ModelNotFound", unknown("gone", "has no available versions")])
  expect(refused("gone", "x")[0]).toBe("InvalidRequest")
  expect(refused("other", "1")).toEqual(["ModelNotFound", unknown("other", "is not found")])
  store.forget(gone)
  expect(refused("gone", "")).toEqual(["ModelNotFound", unknown("gone", "is not found")])
})

it.each([
  ["x", " (details: stol)"],
  ["1.5", " (details: stol)"],
  ["9223372036854775808", " (details: stol)"],
  ["-1", ""],
])("%j is not a version of any model", (requested, details) => {
  const message =
    `failed to get model version from specified version string '${requested}'${details}, ` +
    "version should be an integral value > 0"
  for (const name of ["m", "foo"]) expect(refusal(name, requested)).toMatchObject({ _tag: "InvalidRequest", message })
})

it("refuses two models of the same name and version", () => {
  expect(() => ModelStore.of([model("m", "1"), model("m", "1")])).toThrow(
    "Model 'm' version 1 is given more than once.",
  )
})

it("adds and removes all versions of a name at once, and notifies watchers", () => {
  const store = ModelStore.of([model("code", "1")])
  const seen: Array<string> = []
  const names = () => store.models.map(({ description: { name, version } }) => `${name} ${version}`).join(", ")
  const unwatch = store.onChange(() => seen.push(names()))
  store.serve("m", [ModelVersion.ready(model("m", "2")), ModelVersion.ready(model("m", "1"))])
  const [held] = store.versions("m")
  store.serve("other", [ModelVersion.ready(model("other", "1"))])
  store.serve("m", [ModelVersion.ready(model("m", "3"))])
  store.serve("m", [])
  unwatch()
  store.serve("other", [])
  expect(seen).toEqual(["code 1, m 2, m 1", "code 1, m 2, m 1, other 1", "code 1, m 3, other 1", "code 1, other 1"])
  expect(names()).toBe("code 1")
  expect(held?.description).toMatchObject({ version: "1" })
  expect(Result.isFailure(store.get("m", ""))).toBe(true)
})

describe("the index of models in code", () => {
  const code = (name: string, version = "1") => new ModelVersion({ name, version, origin: "code" })

  it("shows a version in each of its states, and none that waits for its turn or has gone", () => {
    const store = new ModelStore()
    const version = code("m")
    const shown = () => store.indexOfCode()
    store.add(version)
    expect(shown()).toEqual([])
    version.begin()
    expect(shown()).toEqual([{ name: "m", version: "1", state: "LOADING", reason: "" }])
    const loaded = model("m", "1")
    version.ready(altered(loaded, { life: { isReady: () => true } }))
    store.serve("m", [version])
    expect(shown()).toEqual([{ name: "m", version: "1", state: "READY", reason: "" }])
    store.serve("m", [])
    version.drain()
    expect(shown()).toEqual([{ name: "m", version: "1", state: "UNLOADING", reason: "" }])
    version.end()
    expect(shown()).toEqual([])
    expect(store.names()).toEqual([])
  })

  it("gives the reason why a version is not ready, loaded or not", () => {
    const store = new ModelStore()
    const version = code("m")
    version.begin()
    version.ready(altered(model("m", "1"), { life: { isReady: () => false, problem: () => "no instance is up" } }))
    store.serve("m", [version])
    const failed = code("other")
    store.add(failed)
    failed.begin()
    failed.fail("no weights")
    expect(store.indexOfCode()).toEqual([
      { name: "m", version: "1", state: "UNAVAILABLE", reason: "no instance is up" },
      { name: "other", version: "1", state: "UNAVAILABLE", reason: "no weights" },
    ])
  })

  it("shows the last hundred failures, and forgets one once its version is loaded again", () => {
    const store = new ModelStore()
    const fail = (name: string) => {
      const failed = code(name)
      store.add(failed)
      failed.begin()
      failed.fail("broken")
    }
    for (let index = 0; index < 101; index++) fail(`m${index}`)
    expect(store.indexOfCode()).toHaveLength(100)
    expect(store.indexOfCode()[0]?.name).toBe("m1")
    const repeated = code("m1")
    store.add(repeated)
    repeated.begin()
    expect(store.indexOfCode().filter(({ name }) => name === "m1")).toMatchObject([{ state: "LOADING" }])
  })
})

describe("the index of a repository's model", () => {
  it("shows the latest state of each version: an unloaded one only if there is no newer state", () => {
    const store = new ModelStore()
    const load = (version: string) => {
      const loaded = new ModelVersion({ name: "m", version, origin: "repository" })
      store.add(loaded)
      loaded.begin()
      loaded.ready(altered(model("m", version), { life: { isReady: () => true } }))
      return loaded
    }
    const [first, second] = [load("1"), load("10")]
    store.serve("m", [first, second])
    const shown = () => store.indexOfRepository("m").map(({ version, state, reason }) => [version, state, reason])
    expect(shown()).toEqual([
      ["1", "READY", ""],
      ["10", "READY", ""],
    ])
    store.serve("m", [second])
    first.drain()
    const next = new ModelVersion({ name: "m", version: "1", origin: "repository" })
    store.add(next)
    next.begin()
    expect(shown()[0]).toEqual(["1", "LOADING", ""])
    next.fail("broken")
    expect(shown()[0]).toEqual(["1", "UNLOADING", ""])
    first.end()
    expect(shown()).toEqual([
      ["1", "UNAVAILABLE", "broken"],
      ["10", "READY", ""],
    ])
    second.fail("it has lost a model")
    store.serve("m", [])
    expect(shown()[1]).toEqual(["10", "UNAVAILABLE", "it has lost a model"])
    expect(store.indexOfCode()).toEqual([])
  })
})
