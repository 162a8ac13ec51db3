/** Interruption of a load of several versions, after one of them is built. */
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { repository } from "../../../../test/fixtures/repository.ts"
import { open } from "../Repository.fixture.ts"

/** Events that the scripts report to this test, which runs in the same process. */
const events: Array<string> = []
let onEvent = () => {}
Reflect.set(globalThis, "report", (event: string) => {
  events.push(event)
  onEvent()
})

/** A running initialization is not interrupted: it ends with this promise. */
const initialization = Promise.withResolvers<void>()
Reflect.set(globalThis, "initialization", initialization.promise)

/** Completes once all these events have happened, in any order. */
const happened = (...expected: ReadonlyArray<string>) =>
  Effect.promise(
    () =>
      new Promise<void>((resolve) => {
        onEvent = () => {
          if (expected.every((event) => events.includes(event))) resolve()
        }
        onEvent()
      }),
  )

const script = (version: number, initialize: string) => `export default {
  initialize: () => { globalThis.report("initialize ${version}"); ${initialize} },
  execute: (requests) => requests.map(({ inputs: { X } }) => ({ Y: X })),
  finalize: () => globalThis.report("finalize ${version}"),
}`

const dims = "data_type: TYPE_FP32 dims: 1"

it.live("ends the built versions with the others, and a later load finds nothing of it", () =>
  Effect.gen(function* () {
    const fixture = yield* repository
    fixture.write(
      "m/config.pbtxt",
      `version_policy { all {} } input { name: "X" ${dims} } output { name: "Y" ${dims} }`,
    )
    fixture.write("m/1/model.js", script(1, ""))
    fixture.write("m/2/model.js", script(2, "return globalThis.initialization"))
    const { load, unload, index, registry } = yield* open(fixture, { control: "explicit" })
    const loading = yield* Effect.forkChild(load("m"))
    yield* happened("initialize 1", "initialize 2")
    expect(index().map(({ state }) => state)).toEqual(["LOADING", "LOADING"])
    const leaving = yield* Effect.forkChild(Fiber.interrupt(loading), { startImmediately: true })
    initialization.resolve()
    yield* Fiber.join(leaving)
    yield* happened("finalize 1")
    expect(registry.known("m")).toEqual([])
    expect(index()).toEqual([{ name: "m" }])

    fixture.write("m/2/model.js", script(2, ""))
    yield* load("m")
    expect(index().map(({ state }) => state)).toEqual(["READY", "READY"])
    yield* unload("m")
    yield* happened("finalize 2")
    expect(index().map(({ state, reason }) => [state, reason])).toEqual([
      ["UNAVAILABLE", "unloaded"],
      ["UNAVAILABLE", "unloaded"],
    ])
  }),
)
