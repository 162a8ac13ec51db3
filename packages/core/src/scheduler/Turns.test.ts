/** Batches that end at once, and the turns of the event loop that they share: those of a test, one after another. */
import { expect, it } from "@effect/vitest"
import { Clock, Context, Effect, Exit, Result, Scheduler } from "effect"
import { ExecutionFailed } from "../error/InferenceError.ts"
import type { Instance } from "../instance/Instance.ts"
import { harness, request } from "./Scheduler.fixture.ts"
import { maxBatches, maxNanos, TurnLimit } from "./TurnLimit.ts"

/** Turns that tests start, and a clock that only they advance. */
const manualTurns = Effect.map(Clock.Clock, (clock) => {
  const tasks: Array<() => void> = []
  const time = { nanos: 0 }
  const scheduler = new Scheduler.MixedScheduler("async", (task) => {
    tasks.push(task)
    return () => {}
  })
  const monotonicTimeNanosUnsafe = () => BigInt(time.nanos)
  const context = Context.make(Scheduler.Scheduler, scheduler).pipe(
    Context.add(Clock.Clock, { ...clock, monotonicTimeNanosUnsafe }),
  )
  return { context, time, turn: () => tasks.shift()?.(), turns: () => tasks.length }
})

const succeed: Instance["execute"] = (batch, settle) => {
  const outcomes = batch.requests.map(({ inputs }) => Result.succeed({ outputs: inputs, parameters: {} }))
  settle(Exit.succeed({ outcomes, inputDuration: 0, outputDuration: 0 }))
  return () => {}
}

/** A model whose batches are executed by this function: the sizes of the batches, and the ends of the requests. */
const model = Effect.fnUntraced(function* (
  { context }: { readonly context: Context.Context<never> },
  maxBatchSize: number,
  execute: Instance["execute"] = succeed,
) {
  const sizes: Array<number> = []
  const ends: Array<string> = []
  const wrap = (): Instance["execute"] => (batch, settle) => {
    sizes.push(batch.rows)
    return execute(batch, settle)
  }
  const { scheduler } = yield* Effect.provideContext(harness({ maxBatchSize, wrap }), context)
  const submit = (id: string, then = () => {}) =>
    scheduler.submit(request(1, { id }), (outcome) => {
      ends.push(Result.isSuccess(outcome) ? id : `${id} ${outcome.failure._tag}`)
      then()
    })
  return { sizes, ends, submit }
})

const numbers = (count: number) => Array.from({ length: count }, (_, index) => `${index + 1}`)

it.effect("9 => 4,4,1 (max 4), at once: one turn, with the replies in order", () =>
  Effect.gen(function* () {
    const turns = yield* manualTurns
    const { sizes, ends, submit } = yield* model(turns, 4)
    for (const id of numbers(9)) submit(id)
    expect([sizes, turns.turns()]).toEqual([[], 1])
    turns.turn()
    expect([sizes, ends, turns.turns()]).toEqual([[4, 4, 1], numbers(9), 0])
  }),
)

it.effect("of more batches than the limit of a turn, the rest gets another turn, behind the other models'", () =>
  Effect.gen(function* () {
    const turns = yield* manualTurns
    const first = yield* model(turns, 1)
    const second = yield* model(turns, 1)
    for (const id of numbers(maxBatches + 3)) first.submit(id)
    second.submit("other")
    turns.turn()
    expect([first.ends, second.ends]).toEqual([numbers(maxBatches), []])
    turns.turn()
    expect([first.ends.length, second.ends]).toEqual([maxBatches, ["other"]])
    turns.turn()
    expect([first.ends, turns.turns()]).toEqual([numbers(maxBatches + 3), 0])
  }),
)

it.effect("a turn in which batches have taken 2 ms starts no further one", () =>
  Effect.gen(function* () {
    const turns = yield* manualTurns
    const { sizes, submit } = yield* model(turns, 1, (batch, settle) => {
      turns.time.nanos += 0.7e6
      return succeed(batch, settle)
    })
    for (const id of numbers(5)) submit(id)
    turns.turn()
    expect(sizes).toHaveLength(3)
    turns.turn()
    expect([sizes.length, turns.turns()]).toEqual([5, 0])
  }),
)

it.effect("a batch that fails or throws at once fails its requests only, and the turn goes on", () =>
  Effect.gen(function* () {
    const turns = yield* manualTurns
    const { ends, submit } = yield* model(turns, 2, (batch, settle) => {
      const [id] = batch.requests.map((each) => each.id)
      if (id === "1") throw new Error("broken")
      if (id !== "3") return succeed(batch, settle)
      settle(Exit.fail(new ExecutionFailed({ message: "no" })))
      return () => {}
    })
    for (const id of numbers(6)) submit(id)
    turns.turn()
    const failures = numbers(4).map((id) => `${id} ExecutionFailed`)
    expect(ends).toEqual([...failures, "5", "6"])
  }),
)

it.effect("requests that replies have sent share the batch of the next turn", () =>
  Effect.gen(function* () {
    const turns = yield* manualTurns
    const { sizes, ends, submit } = yield* model(turns, 2)
    for (const id of numbers(5)) submit(id, () => void submit(`${id}+`))
    turns.turn()
    expect([sizes, ends]).toEqual([[2], ["1", "2"]])
    turns.turn()
    expect([sizes, ends]).toEqual([
      [2, 2],
      ["1", "2", "3", "4"],
    ])
  }),
)

it.effect("a batch that ends later gives its instance the next one in another turn", () =>
  Effect.gen(function* () {
    const turns = yield* manualTurns
    const ends: Array<() => void> = []
    const { sizes, submit } = yield* model(turns, 1, (batch, settle) => {
      ends.push(() => void succeed(batch, settle))
      return () => {}
    })
    for (const id of numbers(2)) submit(id)
    turns.turn()
    ends[0]?.()
    expect([sizes, turns.turns()]).toEqual([[1], 1])
    turns.turn()
    ends[1]?.()
    expect([sizes, ends.length, turns.turns()]).toEqual([[1, 1], 2, 0])
  }),
)

it("a turn begins with its whole limit", () => {
  const limit = new TurnLimit()
  limit.begin(0)
  expect([limit.allows(maxNanos - 1), limit.allows(maxNanos)]).toEqual([true, false])
  limit.begin(maxNanos)
  expect(limit.allows(maxNanos)).toBe(true)
})
