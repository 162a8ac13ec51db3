import { expect, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { describe } from "vitest"
import { Model, Tensor } from "@nereid/core"
import * as InferMessage from "@nereid/core/internal/codec/protobuf/InferMessage"
import type { Parameters } from "@nereid/core/internal/request/Request"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { EndedByModel, SequenceHistory } from "@nereid/core/internal/sequence/SequenceHistory"
import { Call } from "../protocol/SequenceEntity.ts"
import * as MemoryStore from "../store/MemoryStore.ts"
import { SequenceStore, SequenceStoreError } from "../store/SequenceStore.ts"
import { executions, Sums, SumsLive } from "../Sums.fixture.ts"
import { ReplyBudget } from "./KnownSequences.ts"
import * as PartOwner from "./PartOwner.ts"

const call = (name: string, value: number, parameters: Parameters = {}, model = "sums"): Call =>
  new Call({
    call: name,
    request: InferMessage.encode(
      {
        modelName: model,
        modelVersion: "",
        id: "",
        parameters: { sequence_id: 5n, ...parameters },
        inputs: [
          { name: "VALUE", datatype: "FP32", shape: [1, 1], bytes: new Uint8Array(new Float32Array([value]).buffer) },
        ],
        outputs: [],
      },
      0,
    ),
  })

const start = { sequence_start: true }

const totalOf = (bytes: Uint8Array): number => {
  const [output] = InferMessage.decode(bytes).outputs
  return new Float32Array(new Uint8Array(output?.bytes ?? []).buffer)[0] ?? NaN
}

/** A model in a process of its own, so to speak. */
const process = Effect.suspend(() =>
  Layer.build(Layer.fresh(SumsLive)).pipe(
    Effect.map((context) => Context.get(context, Sums).model),
    Effect.provideService(SequenceHistory, new EndedByModel()),
  ),
)

/** An owner of the part that leaves when the result's effect runs. */
const ownerOf = Effect.fnUntraced(function* (model: RunningModel, persist = false) {
  const store = yield* SequenceStore
  const scope = yield* Scope.make()
  const options = { model, part: 7, store, persist, replies: new ReplyBudget() }
  const owner = yield* Scope.provide(PartOwner.make(options), scope)
  const total = (...args: CallArguments) => Effect.map(owner.infer(call(...args)), totalOf)
  return { owner, total, leave: Scope.close(scope, Exit.void) }
})

type CallArguments = [name: string, value: number, parameters?: Parameters]

const test = (name: string, program: Effect.Effect<void, unknown, SequenceStore | Scope.Scope>) =>
  it.effect(name, () => program.pipe(Effect.scoped, Effect.provide(Layer.fresh(MemoryStore.layer))))

describe("the owner of a part", () => {
  test(
    "executes a call once, however often it arrives",
    Effect.gen(function* () {
      const { total } = yield* ownerOf(yield* process)
      const before = executions.count
      const first = yield* Effect.all([total("a/1", 1, start), total("a/1", 1, start)], { concurrency: "unbounded" })
      expect(first).toEqual([1, 1])
      expect(yield* total("a/1", 1, start)).toBe(1)
      expect(yield* total("a/2", 2)).toBe(3)
      expect(yield* total("a/2", 2)).toBe(3)
      expect(executions.count - before).toBe(2)
    }),
  )

  test(
    "executes a call whose caller leaves, because it may come again",
    Effect.gen(function* () {
      const { total } = yield* ownerOf(yield* process)
      yield* total("a/1", 1, start)
      const fiber = yield* Effect.forkChild(total("a/2", 0.5), { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      const again = yield* Effect.forkChild(total("a/2", 0.5), { startImmediately: true })
      yield* TestClock.adjust("200 millis")
      expect(yield* Fiber.join(again)).toBe(1.5)
      expect(yield* total("a/3", 1)).toBe(2.5)
    }),
  )

  test(
    "gives its sequences to the next owner, with the responses to their last calls",
    Effect.gen(function* () {
      const one = yield* ownerOf(yield* process)
      yield* one.total("a/1", 1, start)
      yield* one.total("b/1", 10, { ...start, sequence_id: "five" })
      yield* one.leave
      const before = executions.count
      const other = yield* ownerOf(yield* process)
      expect(yield* other.total("a/1", 1, start)).toBe(1)
      expect(executions.count).toBe(before)
      expect(yield* other.total("a/2", 1)).toBe(2)
      expect(yield* other.total("b/2", 1, { sequence_id: "five" })).toBe(11)
    }),
  )

  test(
    "waits for a request that is executed when it leaves, and passes on one that waits",
    Effect.gen(function* () {
      const one = yield* ownerOf(yield* process)
      yield* one.total("a/1", 1, start)
      const before = executions.count
      const running = yield* Effect.forkChild(one.total("a/2", 0.5), { startImmediately: true })
      const waiting = yield* Effect.forkChild(one.total("a/3", 1), { startImmediately: true })
      while (executions.count === before) yield* Effect.yieldNow
      const leaving = yield* Effect.forkChild(one.leave, { startImmediately: true })
      yield* TestClock.adjust("200 millis")
      expect(yield* Fiber.join(running)).toBe(1.5)
      yield* Fiber.join(leaving)
      // The caller of an interrupted call repeats it.
      expect(Exit.hasInterrupts(yield* Fiber.await(waiting))).toBe(true)
      const other = yield* ownerOf(yield* process)
      expect(yield* other.total("a/2", 0.5)).toBe(1.5)
      expect(yield* other.total("a/3", 1)).toBe(2.5)
    }),
  )

  test(
    "says that a sequence has expired while it was stored, until its caller begins it again",
    Effect.gen(function* () {
      const one = yield* ownerOf(yield* process)
      yield* one.total("a/1", 1, start)
      yield* one.leave
      yield* TestClock.adjust("30 seconds")
      const other = yield* ownerOf(yield* process)
      const error = yield* Effect.flip(other.total("a/2", 1))
      expect(error).toMatchObject({ tag: "SequenceNotFound", document: '{"reason":"expired","idleMillis":30000}' })
      const never = yield* Effect.flip(other.total("b/2", 1, { sequence_id: 6n }))
      expect(never).toMatchObject({ tag: "SequenceNotFound", document: '{"reason":"neverStarted"}' })
      expect(yield* other.total("a/3", 5, start)).toBe(5)
      expect(yield* other.total("a/4", 5, { sequence_end: true })).toBe(10)
      const over = yield* Effect.flip(other.total("a/5", 5))
      expect(over).toMatchObject({ tag: "SequenceNotFound", document: '{"reason":"ended"}' })
    }),
  )

  test(
    "says that a sequence has expired that left, and came back too late",
    Effect.gen(function* () {
      const model = yield* process
      const one = yield* ownerOf(model)
      yield* one.total("a/1", 1, start)
      yield* one.leave
      yield* TestClock.adjust("30 seconds")
      const back = yield* ownerOf(model)
      expect(yield* Effect.flip(back.total("a/2", 1))).toMatchObject({
        document: '{"reason":"expired","idleMillis":30000}',
      })
    }),
  )

  test(
    "takes over a sequence for as long as its own limit of idle time allows",
    Effect.gen(function* () {
      const one = yield* ownerOf(yield* process)
      yield* one.total("a/1", 1, { ...start, sequence_max_idle: 10_000_000n })
      yield* one.total("b/1", 1, { ...start, sequence_id: 6n, sequence_max_idle: 60_000_000n })
      yield* one.leave
      yield* TestClock.adjust("30 seconds")
      const other = yield* ownerOf(yield* process)
      const error = yield* Effect.flip(other.total("a/2", 1))
      expect(error).toMatchObject({ document: '{"reason":"expired","idleMillis":10000}' })
      expect(yield* other.total("b/2", 1, { sequence_id: 6n })).toBe(2)
      yield* TestClock.adjust("60 seconds")
      const late = yield* Effect.flip(other.total("b/3", 1, { sequence_id: 6n }))
      expect(late).toMatchObject({ document: '{"reason":"expired","idleMillis":60000}' })
    }),
  )

  test(
    "says that a sequence is lost that left, and did not come back with its part",
    Effect.gen(function* () {
      const model = yield* process
      const one = yield* ownerOf(model)
      yield* one.total("a/1", 1, start)
      yield* one.leave
      // It takes the sequence, and dies.
      yield* ownerOf(yield* process)
      const back = yield* ownerOf(model)
      const error = yield* Effect.flip(back.total("a/2", 1))
      expect(error).toMatchObject({ tag: "SequenceNotFound", document: '{"reason":"restarted"}' })
    }),
  )

  test(
    "says that a process that died has lost the state",
    Effect.gen(function* () {
      const one = yield* ownerOf(yield* process)
      yield* one.total("a/1", 1, start)
      const other = yield* ownerOf(yield* process)
      expect(yield* Effect.flip(other.total("a/2", 1))).toMatchObject({ tag: "SequenceNotFound" })
    }),
  )

  test(
    "replaces a copy that stayed when it could not be stored",
    Effect.gen(function* () {
      const model = yield* process
      const one = yield* ownerOf(model)
      yield* one.total("a/1", 1, start)
      yield* one.leave
      // The part goes to another runner and returns, and an older copy has stayed here.
      const other = yield* ownerOf(yield* process)
      yield* other.total("a/2", 10)
      const stale = yield* ownerOf(model)
      yield* stale.total("b/1", 5, start)
      yield* other.leave
      const back = yield* ownerOf(model)
      expect(yield* back.total("b/2", 1)).toBe(6)
    }),
  )

  test(
    "refuses requests that do not fit the model",
    Effect.gen(function* () {
      const { owner } = yield* ownerOf(yield* process)
      const broken = new Call({ call: "a/1", request: new Uint8Array([255]) })
      expect(yield* Effect.flip(owner.infer(broken))).toMatchObject({ tag: "InvalidRequest" })
      const { request } = call("a/2", 1)
      const late = new Call({ call: "a/2", request, timeout: 0 })
      expect(yield* Effect.flip(owner.infer(late))).toMatchObject({ tag: "SequenceNotFound" })
      const nameless = call("a/3", 1, { sequence_id: 0n, ...start })
      const error = yield* Effect.flip(owner.infer(nameless))
      expect(error.message).toContain("must specify a non-zero or non-empty correlation ID")
    }),
  )
})

describe("the owner of a part that stores each request", () => {
  test(
    "loses nothing that was answered when its process dies",
    Effect.gen(function* () {
      const one = yield* ownerOf(yield* process, true)
      yield* one.total("a/1", 1, start)
      yield* one.total("a/2", 2)
      const other = yield* ownerOf(yield* process, true)
      const before = executions.count
      expect(yield* other.total("a/2", 2)).toBe(3)
      expect(executions.count).toBe(before)
      expect(yield* other.total("a/3", 3)).toBe(6)
    }),
  )

  test(
    "answers the end of a sequence again, and forgets a sequence that was closed",
    Effect.gen(function* () {
      const one = yield* ownerOf(yield* process, true)
      yield* one.total("a/1", 1, start)
      yield* one.total("a/2", 2, { sequence_end: true })
      yield* one.total("b/1", 1, { ...start, sequence_id: 6n })
      yield* one.owner.infer(call("b/2", 0, { sequence_id: 6n, sequence_end: true, sequence_close: true }))
      const other = yield* ownerOf(yield* process, true)
      expect(yield* other.total("a/2", 2, { sequence_end: true })).toBe(3)
      expect(yield* Effect.flip(other.total("a/3", 1))).toMatchObject({ tag: "SequenceNotFound" })
      expect(yield* Effect.flip(other.total("b/3", 1, { sequence_id: 6n }))).toMatchObject({ tag: "SequenceNotFound" })
    }),
  )

  test(
    "begins a request once the state before it is stored",
    Effect.gen(function* () {
      const one = yield* ownerOf(yield* process, true)
      const values = [1, 2, 3, 4]
      const totals = yield* Effect.forEach(
        values,
        (value, index) => one.total(`a/${value}`, value, index === 0 ? start : {}),
        { concurrency: "unbounded" },
      )
      expect(totals).toEqual([1, 3, 6, 10])
      const other = yield* ownerOf(yield* process, true)
      expect(yield* other.total("a/5", 5)).toBe(15)
    }),
  )

  test(
    "ends its copy of a sequence once another runner has it",
    Effect.gen(function* () {
      const frozen = yield* ownerOf(yield* process, true)
      yield* frozen.total("a/1", 1, start)
      const other = yield* ownerOf(yield* process, true)
      expect(yield* other.total("a/2", 1)).toBe(2)
      const error = yield* Effect.flip(frozen.total("b/2", 100))
      expect(error).toMatchObject({ tag: "SequenceNotFound", document: '{"reason":"moved"}' })
      yield* frozen.leave
      expect(yield* other.total("a/3", 1)).toBe(3)
    }),
  )

  it.effect("ends a sequence whose state cannot be stored", () => {
    const failure = new SequenceStoreError({ message: "the disk is full", cause: undefined })
    const broken = Layer.succeed(SequenceStore, {
      take: () => Effect.succeed([]),
      put: () => Effect.fail(failure),
      remove: () => Effect.void,
    })
    return Effect.gen(function* () {
      const { total } = yield* ownerOf(yield* process, true)
      const fiber = yield* Effect.forkChild(Effect.flip(total("a/1", 1, start)), { startImmediately: true })
      yield* TestClock.adjust("1 minute")
      const error = yield* Fiber.join(fiber)
      expect(error).toMatchObject({ tag: "SequenceNotFound", document: '{"reason":"failed"}' })
      expect(error.message).toContain("the disk is full")
      expect(yield* Effect.flip(total("a/2", 1))).toMatchObject({ tag: "SequenceNotFound" })
    }).pipe(Effect.scoped, Effect.provide(broken))
  })
})

class Words extends Model.Service<Words>()("words", {
  inputs: { VALUE: Tensor.scalar("FP32") },
  outputs: { TOTAL: Tensor.scalar("FP32") },
  maxBatchSize: 4,
  sequence: { state: { SUM: Tensor.scalar("FP32") } },
}) {}

const WordsLive = Model.sequenceStream(Words, function* ({ VALUE }, { state: { SUM } }) {
  for (let step = 1; step <= 2; step++) yield { outputs: { TOTAL: SUM + step * VALUE } }
  yield { state: { SUM: SUM + 2 * VALUE } }
})

describe("the owner of a part of a model that streams", () => {
  test(
    "gives all responses, stores the state, and does not repeat a stream",
    Effect.gen(function* () {
      const built = Effect.map(Layer.build(Layer.fresh(WordsLive)), (context) => Context.get(context, Words).model)
      const totals = (owner: PartOwner.PartOwner, message: Call) =>
        Effect.map(Stream.runCollect(owner.stream(message)), (all) => all.map(totalOf))
      const one = yield* ownerOf(yield* built, true)
      expect(yield* totals(one.owner, call("a/1", 1, start, "words"))).toEqual([1, 2])
      const again = yield* Effect.flip(totals(one.owner, call("a/1", 1, start, "words")))
      expect(again).toMatchObject({ tag: "Unavailable" })
      const other = yield* ownerOf(yield* built, true)
      expect(yield* totals(other.owner, call("a/2", 1, {}, "words"))).toEqual([3, 4])
    }),
  )
})
