/** Sequences that leave a scheduler and come to another one, on the test clock. */
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Result } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import type { SequenceEnd } from "../request/SequencePosition.ts"
import { make as tensor } from "../tensor/TypedTensor.ts"
import type { SequenceMove } from "../transfer/SequenceMove.ts"
import { failureOf, sequences } from "./Sequences.fixture.ts"

const states = [{ input: "IN", output: "OUT", datatype: "INT32", dims: [1], initial: undefined }] as const

const declared = { strategy: { _tag: "oldest", slots: 4 }, states } as const

const moveOf = ({ scheduler }: { readonly scheduler: { readonly sequences: SequenceMove | undefined } }) => {
  assert.isDefined(scheduler.sequences)
  return scheduler.sequences
}

const state = (value: number) => tensor("INT32", [1, 1], Int32Array.of(value))

const reasonOf = (fiber: Fiber.Fiber<unknown, object>) =>
  Effect.map(Effect.flip(Fiber.join(fiber)), (error) => ("reason" in error ? error.reason : error))

type Source = Effect.Success<ReturnType<typeof sequences>>

/** Begins a sequence whose state is this number. */
const begin = Effect.fnUntraced(function* (source: Source, id: string, value: number) {
  yield* source.send(id, "S")
  yield* source.settle
  const run = source.runs.length - 1
  source.runs[run]?.batch.requests[0]?.sequence?.state.keep([state(value)], false)
  yield* source.complete(run)
})

describe("export", () => {
  it.effect("a sequence goes on in another scheduler with its state", () =>
    Effect.gen(function* () {
      const source = yield* sequences(declared)
      const target = yield* sequences(declared)
      yield* begin(source, "A", 7)
      yield* TestClock.adjust(100)
      const exported = yield* moveOf(source).exportSequences()
      expect(exported).toMatchObject({ format: 1, model: "m", states: "batch:IN>OUT:INT32[1]" })
      expect(exported.sequences).toMatchObject([{ id: "A", ageNanos: 100e6 }])
      expect(source.queue?.counts(0)).toMatchObject({ live: 0, stateBytes: 0, ended: { moved: 1 } })
      expect(moveOf(target).importSequences(exported)).toEqual(Result.succeed([{ id: "A", problem: undefined }]))
      yield* target.send("A", "E")
      yield* target.settle
      expect(target.runs[0]?.batch.requests[0]?.sequence?.state.tensors?.map(({ data }) => [...data])).toEqual([[7]])
      yield* target.complete(0)
      expect(target.queue?.counts(0)).toMatchObject({ live: 0, ended: { ended: 1 } })
    }),
  )

  it.effect("a sequence takes its limit of idle time with it, up to that of the other server", () =>
    Effect.gen(function* () {
      const source = yield* sequences({ ...declared, maxIdleLimit: Infinity })
      for (const [id, millis] of Object.entries({ A: 100, B: 60_000 })) {
        yield* source.send(id, "S", { parameters: { sequence_max_idle: BigInt(millis * 1e3) } })
      }
      yield* source.drain
      const exported = yield* moveOf(source).exportSequences()
      expect(exported.sequences.map(({ maxIdleNanos }) => maxIdleNanos)).toEqual([100e6, 60e9])
      const target = yield* sequences({ ...declared, maxIdle: 1e9, maxIdleLimit: 10e9 })
      moveOf(target).importSequences(exported)
      yield* TestClock.adjust(100)
      expect(target.queue?.counts(0)).toMatchObject({ live: 1, ended: { expired: 1 } })
      yield* TestClock.adjust(9_899)
      expect(target.queue?.counts(0)).toMatchObject({ live: 1 })
      yield* TestClock.adjust(1)
      expect(target.queue?.counts(0)).toMatchObject({ live: 0, ended: { expired: 2 } })
    }),
  )

  it.effect("a request to an exported sequence fails, because it has moved", () =>
    Effect.gen(function* () {
      const source = yield* sequences(declared)
      yield* begin(source, "A", 7)
      yield* moveOf(source).exportSequences()
      expect(yield* reasonOf(yield* source.send("A"))).toBe("moved")
    }),
  )

  it.effect.each(["oldest", "direct", "free"] as const)("%s: requests during an export wait for its result", (_tag) =>
    Effect.gen(function* () {
      const strategy =
        _tag === "direct" ? { _tag, slots: 2, maxQueueDelay: 0, minSlotUtilization: 0 } : { _tag, slots: 2 }
      const source = yield* sequences({ ...declared, strategy })
      yield* begin(source, "A", 1)
      yield* begin(source, "B", 2)
      const running = yield* source.send("A")
      yield* source.settle
      const sent = yield* Deferred.make<ReadonlyArray<string>>()
      const move = yield* Effect.forkChild(
        moveOf(source).moveSequences(() => Deferred.await(sent)),
        { startImmediately: true },
      )
      const behind = [yield* source.send("A"), yield* source.send("B")] as const
      yield* source.complete(2)
      yield* Fiber.join(running)
      yield* source.settle
      expect(source.runs.length).toBe(3)
      yield* Deferred.succeed(sent, ["A"])
      expect(yield* Fiber.join(move)).toEqual({ moved: 1, stayed: 1 })
      expect(yield* reasonOf(behind[0])).toBe("moved")
      yield* source.settle
      expect(source.batches().at(-1)).toContain("B2")
      yield* source.complete(3)
      yield* Fiber.join(behind[1])
    }),
  )

  it.effect("a sequence whose request does not end in time stays", () =>
    Effect.gen(function* () {
      const source = yield* sequences(declared)
      yield* begin(source, "A", 1)
      const running = yield* source.send("A")
      yield* source.settle
      const move = yield* Effect.forkChild(moveOf(source).exportSequences({ wait: "1 second" }), {
        startImmediately: true,
      })
      const behind = yield* source.send("A")
      yield* TestClock.adjust("1 second")
      expect((yield* Fiber.join(move)).sequences).toEqual([])
      yield* source.complete(1)
      yield* Fiber.join(running)
      yield* source.complete(2)
      yield* Fiber.join(behind)
    }),
  )

  it.effect("a failed send leaves all sequences, which expire as before", () =>
    Effect.gen(function* () {
      const source = yield* sequences(declared)
      yield* begin(source, "A", 1)
      const error = yield* Effect.flip(moveOf(source).moveSequences(() => Effect.fail("down")))
      expect(error).toBe("down")
      expect(source.queue?.counts(0)).toMatchObject({ live: 1 })
      yield* TestClock.adjust("1 second")
      expect(source.queue?.counts(0)).toMatchObject({ live: 0, ended: { expired: 1 } })
    }),
  )

  it.effect("a START during an export begins another sequence here", () =>
    Effect.gen(function* () {
      const source = yield* sequences(declared)
      yield* begin(source, "A", 1)
      const sent = yield* Deferred.make<ReadonlyArray<string>>()
      const move = yield* Effect.forkChild(
        moveOf(source).moveSequences(() => Deferred.await(sent)),
        { startImmediately: true },
      )
      yield* source.settle
      const before = yield* source.send("A")
      const start = yield* source.send("A", "S")
      yield* Deferred.succeed(sent, ["A"])
      yield* Fiber.join(move)
      expect(yield* reasonOf(before)).toBe("moved")
      yield* source.settle
      yield* source.complete(1)
      yield* Fiber.join(start)
      expect(source.queue?.counts(0)).toMatchObject({ live: 1 })
    }),
  )

  it.effect("a cancelled request during an export ends its sequence", () =>
    Effect.gen(function* () {
      const source = yield* sequences(declared)
      yield* begin(source, "A", 1)
      const sent = yield* Deferred.make<ReadonlyArray<string>>()
      const move = yield* Effect.forkChild(
        moveOf(source).moveSequences(() => Deferred.await(sent)),
        { startImmediately: true },
      )
      yield* source.settle
      yield* Fiber.interrupt(yield* source.send("A"))
      yield* Deferred.succeed(sent, ["A"])
      yield* Fiber.join(move)
      const ended: SequenceEnd = "cancelled"
      expect(source.queue?.counts(0)).toMatchObject({ live: 0, ended: { [ended]: 1 } })
    }),
  )

  it.effect("a model without state tensors is refused", () =>
    Effect.gen(function* () {
      const source = yield* sequences({ ...declared, states: [] })
      const error = yield* Effect.flip(moveOf(source).exportSequences())
      expect(error).toMatchObject({ _tag: "Unsupported" })
      expect(error.message).toBe(
        "sequences of model 'm' cannot be moved: it declares no state tensors, so its state is unknown",
      )
    }),
  )
})

describe("import", () => {
  const head = { format: 1, model: "m", states: "batch:IN>OUT:INT32[1]" }
  const one = (overrides: object = {}) => ({
    ...head,
    sequences: [{ id: "A", ageNanos: 0, tensors: [state(1)], ...overrides }],
  })

  it.effect.each([
    [{ format: 2 }, "exported sequences have format '2', expected '1'"],
    [{ model: "n" }, "exported sequences have model 'n', expected 'm'"],
    [{ states: "x" }, "exported sequences have states 'x', expected 'batch:IN>OUT:INT32[1]'"],
  ] as const)("another head is refused: %o", ([overrides, message]) =>
    Effect.gen(function* () {
      const result = moveOf(yield* sequences(declared)).importSequences({ ...one(), ...overrides })
      expect(Result.isFailure(result) && result.failure.message).toBe(message)
    }),
  )

  it.effect.each([
    [{ tensors: [] }, "sequence A of model 'm' has 0 state tensors, expected 1"],
    [
      { tensors: [tensor("FP32", [1, 1], Float32Array.of(1))] },
      "sequence A of model 'm' state 'IN' is FP32[1,1], expected INT32[1,1]",
    ],
    [
      { tensors: [tensor("INT32", [1, 2], Int32Array.of(1, 2))] },
      "sequence A of model 'm' state 'IN' is INT32[1,2], expected INT32[1,1]",
    ],
  ] as const)("a state that does not fit is refused: %#", ([overrides, message]) =>
    Effect.gen(function* () {
      const target = yield* sequences(declared)
      const result = moveOf(target).importSequences(one(overrides))
      expect(Result.getOrThrow(result)[0]?.problem?.message).toBe(message)
      expect(target.queue?.counts(0)).toMatchObject({ live: 0, stateBytes: 0 })
    }),
  )

  it.effect("an id that is live is refused, and the others are taken", () =>
    Effect.gen(function* () {
      const target = yield* sequences(declared)
      yield* begin(target, "A", 1)
      const two = one()
      const result = moveOf(target).importSequences({
        ...two,
        sequences: [...two.sequences, { id: "B", ageNanos: 0, tensors: undefined }],
      })
      expect(Result.getOrThrow(result).map(({ problem }) => problem?._tag)).toEqual(["AlreadyExists", undefined])
    }),
  )

  it.effect("the limit of all states holds", () =>
    Effect.gen(function* () {
      const target = yield* sequences({ ...declared, maxTotalStateBytes: 4 })
      const both = { ...head, sequences: [...one().sequences, ...one({ id: "B" }).sequences] }
      const problems = Result.getOrThrow(moveOf(target).importSequences(both)).map(({ problem }) => problem?.message)
      expect(problems).toEqual([undefined, "the state of sequence B exceeds a limit of model 'm'"])
      expect(target.queue?.counts(0)).toMatchObject({ live: 1, stateBytes: 4 })
    }),
  )

  it.effect("a sequence beyond the slots waits in the backlog, and expires once it has had a slot", () =>
    Effect.gen(function* () {
      const target = yield* sequences({ ...declared, strategy: { _tag: "oldest", slots: 1 }, maxBacklog: 1 })
      const all = { ...head, sequences: ["A", "B", "C"].flatMap((id) => one({ id }).sequences) }
      const problems = Result.getOrThrow(moveOf(target).importSequences(all)).map(({ problem }) => problem)
      expect(problems).toMatchObject([
        undefined,
        undefined,
        {
          _tag: "QueueFull",
          message: expect.stringContaining("no room for sequence C: the backlog of sequences of model 'm' has reached"),
        },
      ])
      expect(target.queue?.counts(0)).toMatchObject({ live: 1, backlog: 1 })
      yield* TestClock.adjust("1 second")
      expect(target.queue?.counts(0)).toMatchObject({ live: 1, backlog: 0, ended: { expired: 1 } })
      yield* TestClock.adjust("1 second")
      expect(target.queue?.counts(0)).toMatchObject({ live: 0, ended: { expired: 2 } })
    }),
  )

  it.effect("a model whose sequences end takes none", () =>
    Effect.gen(function* () {
      const target = yield* sequences(declared)
      yield* Effect.forkChild(target.scheduler.endSequences ?? Effect.void, { startImmediately: true })
      const result = Result.getOrThrow(moveOf(target).importSequences(one()))
      expect(result[0]?.problem?._tag).toBe("Unavailable")
      expect(yield* failureOf(yield* target.send("A"))).toContain("must specify the START flag")
    }),
  )
})
