/**
 * Any interleaving of sequences gives each of them the result of running alone: with batches, several instances, a
 * backlog, requests that fail or are cancelled, sessions that end, close or expire.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, type Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { ExecutionFailed } from "../error/InferenceError.ts"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"

class Hash extends Model.Service<Hash>()("hash", {
  inputs: { VALUE: Tensor.scalar("INT32") },
  outputs: { HASH: Tensor.scalar("INT32") },
  maxBatchSize: 8,
  sequence: { state: { HASH_SO_FAR: Tensor.scalar("INT32") }, maxIdle: "10 seconds", maxSequences: 60 },
}) {}

/** The state is the hash of all values, so that any value of another sequence would change it. */
const next = (hash: number, value: number) => (Math.imul(hash, 31) + value) | 0

const isRefused = (value: number) => value % 11 === 0

const forms: Readonly<Record<string, Layer.Layer<Hash>>> = {
  "single samples": Model.sequence(
    Hash,
    Effect.fnUntraced(function* ({ VALUE }, { state: { HASH_SO_FAR } }) {
      yield* Effect.sleep(VALUE % 7)
      if (isRefused(VALUE)) return yield* new ExecutionFailed({ message: "refused" })
      const hash = next(HASH_SO_FAR, VALUE)
      return { outputs: { HASH: hash }, state: { HASH_SO_FAR: hash } }
    }),
    { instances: 3 },
  ),
  batches: Model.sequenceBatch(
    Hash,
    ({ VALUE }, { state: { HASH_SO_FAR } }) => {
      const hashes = VALUE.data.map((value, row) => next(HASH_SO_FAR.data[row] ?? 0, value))
      const tensor = Tensor.make("INT32", VALUE.shape, hashes)
      const result = { outputs: { HASH: tensor }, state: { HASH_SO_FAR: tensor } }
      return Effect.as(Effect.sleep((VALUE.data[0] ?? 0) % 7), result)
    },
    { instances: 3 },
  ),
  "a handler for each sequence": Model.perSequence(
    class extends Model.Service<Hash>()("hash", {
      inputs: Hash.definition.inputs,
      outputs: Hash.definition.outputs,
      maxBatchSize: 8,
      sequence: { maxIdle: "10 seconds", maxSequences: 60 },
    }) {},
    () => {
      let hash = 0
      return Effect.fnUntraced(function* ({ VALUE }: { readonly VALUE: number }) {
        yield* Effect.sleep(VALUE % 7)
        if (isRefused(VALUE)) return yield* new ExecutionFailed({ message: "refused" })
        return { HASH: (hash = next(hash, VALUE)) }
      })
    },
    { instances: 3 },
  ),
}

/** Integers below `limit`, the same for the same seed. */
const random = (seed: number) => {
  let state = seed * 2_654_435_761
  return (limit: number) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0
    return (state >>> 8) % limit
  }
}

/** One caller: 30 requests in sessions, each of which must answer as if nobody else called. */
const caller = Effect.fnUntraced(function* (seed: number, failsBatch: boolean) {
  const hash = yield* Hash
  const below = random(seed)
  let scope = Scope.makeUnsafe()
  let session = yield* Scope.provide(hash.session(), scope)
  // A cancelled request may have been executed.
  let possible = new Set([0])
  let answers = 0
  const reopen = Effect.fnUntraced(function* () {
    yield* Scope.close(scope, Exit.void)
    scope = Scope.makeUnsafe()
    session = yield* Scope.provide(hash.session(), scope)
    possible = new Set([0])
  })
  for (let request = 0; request < 30; request++) {
    const value = below(1_000_000)
    const action = below(20)
    if (action === 0) yield* reopen()
    else if (action === 1) yield* Effect.sleep("11 seconds")
    else if (action < 6) yield* Effect.sleep(below(40))
    const isEnd = action === 19
    const sent = yield* Effect.forkChild(isEnd ? session.end({ VALUE: value }) : session.infer({ VALUE: value }), {
      startImmediately: true,
    })
    if (action === 18) {
      yield* Effect.sleep(below(6))
      yield* Fiber.interrupt(sent)
      possible = new Set([...possible, ...Array.from(possible, (before) => next(before, value))])
      continue
    }
    const exit = yield* Fiber.await(sent)
    if (Exit.isSuccess(exit)) {
      const expected = [...possible].map((before) => next(before, value))
      expect(expected).toContain(exit.value.HASH)
      answers += 1
      possible = new Set([exit.value.HASH])
    } else {
      const error = yield* Effect.flip(exit)
      if (error._tag === "SequenceNotFound") {
        expect(error.reason).toMatch(/expired|cancelled|ended/)
        yield* reopen()
      } else expect(failsBatch ? error.message : isRefused(value)).toBe(failsBatch ? "" : true)
    }
    if (isEnd) yield* reopen()
  }
  yield* Scope.close(scope, Exit.void)
  return answers
})

describe.each(Object.entries(forms))("%s", (name, layer) => {
  it.effect.each([1, 2])(
    "every sequence has the result of running alone (seed %i)",
    (seed) =>
      Effect.gen(function* () {
        const callers = yield* Effect.forkChild(
          Effect.forEach(
            Array.from({ length: 200 }, (_, index) => seed * 1000 + index),
            (seed) => caller(seed, name === "batches"),
            { concurrency: "unbounded" },
          ),
        )
        // Until the last caller is done.
        while (callers.pollUnsafe() === undefined) yield* TestClock.adjust("500 millis")
        const answers = yield* Fiber.join(callers)
        expect(answers.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(200 * 15)
      }).pipe(Effect.provide(layer), Effect.scoped),
    60_000,
  )
})
