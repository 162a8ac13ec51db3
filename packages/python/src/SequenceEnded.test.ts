/** Models in Python that learn when the sequences are over of which they have executed requests. */
import { assert, describe, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { infer } from "@nereid/core/internal/running/CallableModel"
import { Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { logs, modelFile, python, textTensor } from "./Python.fixture.ts"
import { Python } from "./index.ts"

class Ends extends Model.Service<Ends>()("ends", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { ANSWER: Tensor.utf8() },
  maxBatchSize: 4,
  sequence: { maxIdle: "5 seconds" },
}) {}

const live = Python.layer(Ends, { file: modelFile("sequence_ends"), ...(python !== undefined && { python }) })

/** Returns the events of the model since its last answer. */
const call = Effect.fnUntraced(function* (id: bigint | string, flags: "" | "S" | "E" | "SE", text = "") {
  const { model } = yield* Ends
  const { outputs } = yield* infer(model.calls, {
    id: "",
    inputs: [textTensor(text)],
    rows: 1,
    parameters: { sequence_id: id, sequence_start: flags.includes("S"), sequence_end: flags.includes("E") },
    deadline: undefined,
  })
  return new TextDecoder().decode(outputs[0]?.bytes.subarray(4)).split("; ")
})

describe.skipIf(python === undefined)("a model.py with sequence_ended", () => {
  it.effect("learns of each end once, before it executes a later request", () =>
    Effect.gen(function* () {
      assert.deepEqual(yield* call(2n ** 64n - 1n, "S"), ["execute 18446744073709551615"])
      yield* call(2n ** 64n - 1n, "E")
      assert.deepEqual(yield* call("x", "S"), ["ended 18446744073709551615", "execute x"])
      assert.deepEqual(yield* call("x", "S"), ["replaced 'x'", "execute x"])
      yield* TestClock.adjust("4999 millis")
      assert.deepEqual(yield* call(1n, "S"), ["execute 1"])
      yield* TestClock.adjust("1 milli")
      assert.deepEqual(yield* call(1n, ""), ["expired 'x'", "execute 1"])
      yield* Effect.flip(call(2n, ""))
      assert.deepEqual(yield* call(1n, ""), ["execute 1"])
    }).pipe(Effect.provide(live)),
  )

  it.effect("learns that the caller of a waiting request has left, after the execution", () =>
    Effect.gen(function* () {
      const { layer, until } = yield* logs
      yield* Effect.gen(function* () {
        const executed = yield* Effect.forkChild(call(1n, "S", "wait"))
        yield* until(/it waits/)
        const waiting = yield* Effect.forkChild(call(1n, ""), { startImmediately: true })
        yield* Fiber.interrupt(waiting)
        yield* Fiber.interrupt(executed)
        assert.deepEqual(yield* call(2n, "S"), ["cancelled 1", "execute 2"])
      }).pipe(Effect.provide(Layer.provideMerge(live, layer)))
    }),
  )

  it.effect("goes on after an exception in it, which is logged", () =>
    Effect.gen(function* () {
      const { layer, until } = yield* logs
      yield* Effect.gen(function* () {
        yield* call("bad", "SE")
        yield* until(/sequence_ended[^]*ValueError: no such sequence/)
        assert.deepEqual(yield* call(1n, "S"), ["ended 'bad'", "execute 1"])
      }).pipe(Effect.provide(Layer.provideMerge(live, layer)))
    }),
  )

  it.effect("learns of no end at its unload, since finalize follows", () =>
    Effect.gen(function* () {
      const { layer, until } = yield* logs
      const scope = yield* Scope.make()
      const context = yield* Scope.provide(Layer.build(Layer.provideMerge(live, layer)), scope)
      yield* Effect.provideContext(call(1n, "S"), context)
      yield* Scope.close(scope, Exit.void)
      yield* until(/finalize after \[\]/)
    }),
  )
})
