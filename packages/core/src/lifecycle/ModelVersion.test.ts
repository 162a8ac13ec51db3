import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { define } from "../model/Definition.ts"
import { RunningModel } from "../running/RunningModel.ts"
import type { ModelState } from "./ModelState.ts"
import { BuildScope, ModelVersion } from "./ModelVersion.ts"
import * as PlaceholderModel from "./PlaceholderModel.ts"

const running = PlaceholderModel.make(define("m", { inputs: {}, outputs: {} }))

const make = () => new ModelVersion({ name: "m", version: "1", origin: "code" })

/** A version in each state, with what leads to it. */
const inState: { readonly [S in ModelState]: () => ModelVersion } = {
  wanted: make,
  loading: () => after(inState.wanted, (version) => version.begin()),
  ready: () => after(inState.loading, (version) => version.ready(running)),
  draining: () => after(inState.ready, (version) => version.drain()),
  gone: () => after(inState.draining, (version) => version.end()),
  failed: () => after(inState.loading, (version) => version.fail("broken")),
}

const after = (from: () => ModelVersion, move: (version: ModelVersion) => void): ModelVersion => {
  const version = from()
  move(version)
  return version
}

const moves: { readonly [S in Exclude<ModelState, "wanted">]: (version: ModelVersion) => void } = {
  loading: (version) => version.begin(),
  ready: (version) => version.ready(running),
  draining: (version) => version.drain(),
  gone: (version) => version.end(),
  failed: (version) => version.fail("broken"),
}

/** All transitions, as docs/architecture.md lists them. */
const transitions: { readonly [S in ModelState]: ReadonlyArray<keyof typeof moves> } = {
  wanted: ["loading", "failed", "gone"],
  loading: ["ready", "failed", "gone"],
  ready: ["failed", "draining"],
  draining: ["gone"],
  gone: [],
  // Another reason for the failure. A version that was loaded becomes ready again by `restore`, below.
  failed: ["failed", "draining", "gone"],
}

describe("a version moves", () => {
  const pairs = (["wanted", "loading", "ready", "draining", "gone", "failed"] as const).flatMap((from) =>
    (["loading", "ready", "draining", "gone", "failed"] as const).map((to) => ({ from, to })),
  )

  it.each(pairs.filter(({ from, to }) => transitions[from].includes(to)))("from $from to $to", ({ from, to }) => {
    const version = inState[from]()
    moves[to](version)
    expect(version.state).toBe(to)
    expect(version.reason).toBe(to === "failed" ? "broken" : "")
  })

  it.each(pairs.filter(({ from, to }) => !transitions[from].includes(to)))(
    "never from $from to $to",
    ({ from, to }) => {
      const version = inState[from]()
      expect(() => moves[to](version)).toThrow(`Model 'm' version 1 is ${from} and cannot be ${to}. This is a bug.`)
      expect(version.state).toBe(from)
    },
  )

  it("never from failed to ready, if it was never loaded", () => {
    const version = inState.failed()
    expect(() => version.restore()).toThrow("Model 'm' version 1 is failed and cannot be ready. This is a bug.")
    expect(version.state).toBe("failed")
  })
})

it("takes the last reason for which it has failed", () => {
  const version = inState.failed()
  version.fail("broken otherwise")
  expect([version.state, version.reason]).toEqual(["failed", "broken otherwise"])
})

it("is restored where it had failed, and left alone where it had not", () => {
  const version = inState.ready()
  version.restore()
  expect(version.state).toBe("ready")
  version.fail("it has lost a model")
  version.restore()
  expect([version.state, version.reason]).toEqual(["ready", ""])
})

it("notifies its watchers of every change of state, until they unsubscribe", () => {
  const version = make()
  const seen: Array<ModelState> = []
  const leave = version.watch(({ state }) => seen.push(state))
  version.begin()
  version.ready(running)
  leave()
  version.drain()
  expect(seen).toEqual(["loading", "ready"])
})

describe("built layers", () => {
  const build = Effect.gen(function* () {
    const log: Array<string> = []
    const scope = yield* Scope.make()
    yield* Scope.addFinalizer(
      scope,
      Effect.sync(() => log.push("build")),
    )
    return { log, build: new BuildScope(scope) }
  })
  const readyIn = (build: BuildScope, release: Effect.Effect<void>) => {
    const version = inState.loading()
    const { description, calls, life } = running
    version.ready(new RunningModel({ description, calls, life: { ...life, release } }), build)
    return version
  }

  it.effect("ends with the last of its versions, the instances of each with itself", () =>
    Effect.gen(function* () {
      const { log, build: own } = yield* build
      const [one, other] = ["one", "other"].map((name) =>
        readyIn(
          own,
          Effect.sync(() => log.push(name)),
        ),
      )
      yield* one?.release ?? Effect.void
      expect(log).toEqual(["one"])
      yield* other?.release ?? Effect.void
      expect(log).toEqual(["one", "other", "build"])
    }),
  )

  it.effect("is abandoned where no version has come to use it, and only there", () =>
    Effect.gen(function* () {
      const unused = yield* build
      yield* unused.build.abandon
      expect(unused.log).toEqual(["build"])
      const used = yield* build
      const version = readyIn(used.build, Effect.void)
      yield* used.build.abandon
      expect(used.log).toEqual([])
      expect(Exit.isSuccess(yield* Effect.exit(version.release))).toBe(true)
      expect(used.log).toEqual(["build"])
    }),
  )
})
