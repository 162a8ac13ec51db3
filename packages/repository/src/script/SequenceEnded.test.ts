/** Scripts that learn when the sequences are over of which they have executed requests. */
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Logger, Queue, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Tensor } from "@nereid/core"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { stream } from "@nereid/core/internal/running/CallableModel"
import { repository } from "../../../../test/fixtures/repository.ts"
import * as sequences from "../../../../test/fixtures/sequences.ts"
import { scripts } from "../Repository.fixture.ts"

const openScript = scripts(repository)

const call = (model: RunningModel, id: bigint | string, flags: "" | "S" | "E" | "SE", input = 0) =>
  Stream.runDrain(
    stream(model.calls, {
      id: "",
      inputs: [Tensor.make("INT32", [1, 1], Int32Array.of(input))],
      rows: 1,
      parameters: { sequence_id: id, sequence_start: flags.includes("S"), sequence_end: flags.includes("E") },
      deadline: undefined,
    }),
  )

/** An input of 1 waits for its cancellation, as other values do not. */
const answer = `async ({ inputs: { INPUT }, sequence: { id }, signal }) => {
  globalThis.saw("execute " + id)
  if (INPUT.data[0] === 1) await new Promise((resolve) => signal.addEventListener("abort", resolve))
  return { OUTPUT: INPUT }
}`

const hooks = `
  initialize: () => "state",
  sequenceEnded: (id, reason, state) => {
    globalThis.saw(reason + " " + typeof id + " " + id + " " + state)
    if (id === "throws") throw new Error("no such sequence")
    if (id === "rejects") return Promise.reject(new Error("no sequence later"))
  },
  finalize: () => globalThis.saw("finalize"),`

const batches = `
  const answer = ${answer}
  export default { ${hooks} execute: (requests) => Promise.all(requests.map(answer)) }`

const streams = `
  const answer = ${answer}
  export default { ${hooks} execute: async function* (request) { yield await answer(request) } }`

/** The model, and what its script has seen, in order. */
const opened = Effect.fnUntraced(function* (script: string, more = "") {
  const seen = yield* Queue.unbounded<string>()
  Reflect.set(globalThis, "saw", (event: string) => void Queue.offerUnsafe(seen, event))
  yield* Effect.addFinalizer(() => Effect.sync(() => Reflect.deleteProperty(globalThis, "saw")))
  const logged: Array<unknown> = []
  const layer = Logger.layer([Logger.make(({ message }) => void logged.push(message))])
  const scope = yield* Scope.make()
  const config = `${sequences.config("oldest {}")} ${more}`
  const { model } = yield* Effect.provide(Scope.provide(openScript(script, config, "model.js"), scope), layer)
  const events = Queue.clear(seen)
  return { model: model(), close: Scope.close(scope, Exit.void), seen, events, logged }
})

const forms = [
  ["of batches", batches, ""],
  ["of streams", streams, "model_transaction_policy { decoupled: true }"],
] as const

for (const [form, script, more] of forms) {
  it.effect(`a script ${form} learns of each end once, and not of those of its unload`, () =>
    Effect.gen(function* () {
      const { model, events, close } = yield* opened(script, more)
      yield* call(model, 1n, "S")
      expect(yield* events).toEqual(["execute 1"])
      yield* call(model, 1n, "E")
      expect(yield* events).toEqual(["execute 1", "ended bigint 1 state"])
      yield* call(model, "x", "S")
      yield* call(model, "x", "S")
      expect(yield* events).toEqual(["execute x", "replaced string x state", "execute x"])
      yield* TestClock.adjust("4999 millis")
      expect(yield* events).toEqual([])
      yield* TestClock.adjust("1 milli")
      expect(yield* events).toEqual(["expired string x state"])
      yield* Effect.flip(call(model, 2n, ""))
      yield* call(model, 3n, "S")
      yield* close
      expect(yield* events).toEqual(["execute 3", "finalize"])
    }),
  )

  it.effect(`a script ${form} learns that the caller of a waiting request has left`, () =>
    Effect.gen(function* () {
      const { model, seen } = yield* opened(script, more)
      const executed = yield* Effect.forkChild(call(model, 1n, "S", 1))
      expect(yield* Queue.take(seen)).toBe("execute 1")
      const waiting = yield* Effect.forkChild(call(model, 1n, ""), { startImmediately: true })
      yield* Fiber.interrupt(waiting)
      expect(Queue.sizeUnsafe(seen)).toBe(0)
      yield* Fiber.interrupt(executed)
      expect(yield* Queue.take(seen)).toBe("cancelled bigint 1 state")
    }),
  )
}

it.effect("an error of sequenceEnded is logged, and the model goes on", () =>
  Effect.gen(function* () {
    const { model, logged } = yield* opened(batches)
    yield* call(model, "throws", "SE")
    yield* call(model, "rejects", "SE")
    yield* call(model, "throws", "SE")
    const ends = ["no such sequence", "no sequence later", "no such sequence"]
    expect(logged.flat()).toEqual(
      ends.map((end) => expect.stringMatching(new RegExp(`sequenceEnded of .*model.js has failed: ${end}$`))),
    )
  }),
)

it.live("sequenceEnded of a script in a worker thread has no effect, as the log says", () =>
  Effect.gen(function* () {
    const { model, logged } = yield* opened(
      `globalThis.saw ??= () => {}; ${batches}`,
      'parameters { key: "worker_threads" value { string_value: "true" } }',
    )
    yield* call(model, 1n, "SE")
    expect(logged.flat()).toEqual([expect.stringContaining("it is not called in a worker thread")])
  }),
)
