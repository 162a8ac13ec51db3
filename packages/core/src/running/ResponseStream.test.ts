/** Streams of responses: their buffer, its limit, and their ends. */
import { describe, expect, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Result, Stream } from "effect"
import { ExecutionFailed, type InferenceError } from "../error/InferenceError.ts"
import { type Emit, noParameters, type Reply, type Response } from "../request/Request.ts"
import * as ResponseStream from "./ResponseStream.ts"

const numbered = (number: number): Response => ({ outputs: [], parameters: { number } })
const last: Result.Result<Response, InferenceError> = Result.succeed({ outputs: [], parameters: noParameters })
const broken = (message: string) => new ExecutionFailed({ message })

const reader: ResponseStream.ResponseReader<unknown, string> = {
  decode: ({ parameters }) =>
    parameters["number"] === -1 ? Result.fail("undecodable") : Result.succeed(parameters["number"]),
  failure: ({ message }) => message,
}

/** A request whose model is the test. */
const submitted = (emits = true) => {
  let [emit, reply]: [Emit, Reply] = [() => Effect.void, () => {}]
  let cancelled = 0
  let opened = 0
  const stream = ResponseStream.make(
    (given, ending) => {
      opened += 1
      emit = given
      reply = ending
      return () => (cancelled += 1)
    },
    emits,
    reader,
  )
  return {
    stream,
    emit: (number: number) => emit(numbered(number)),
    reply: (outcome: Parameters<Reply>[0]) => reply(outcome),
    counts: () => ({ opened, cancelled }),
  }
}

/** Takes the stream's arrays until its end, and keeps them. */
const read = Effect.fnUntraced(function* (stream: Stream.Stream<unknown, string>) {
  const arrays: Array<ReadonlyArray<unknown>> = []
  const fiber = yield* Effect.forkChild(
    Effect.exit(Stream.runForEachArray(stream, (array) => Effect.sync(() => arrays.push(array)))),
    { startImmediately: true },
  )
  return { arrays, end: Fiber.join(fiber), fiber }
})

const failureOf = <A, E>(exit: Exit.Exit<A, E>) => (Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined)

describe("a stream of responses", () => {
  it.effect("submits the request when it is opened", () =>
    Effect.gen(function* () {
      const { stream, counts } = submitted()
      expect(counts().opened).toBe(0)
      yield* read(stream)
      expect(counts().opened).toBe(1)
    }),
  )

  it.effect("has all responses of one turn at once", () =>
    Effect.gen(function* () {
      const { stream, emit, reply } = submitted()
      const { arrays, end } = yield* read(stream)
      for (const number of [1, 2, 3]) yield* emit(number)
      yield* Effect.yieldNow
      for (const number of [4, 5]) yield* emit(number)
      reply(last)
      expect(Exit.isSuccess(yield* end)).toBe(true)
      expect(arrays).toEqual([
        [1, 2, 3],
        [4, 5],
      ])
    }),
  )

  it.effect("has the only response of a model that is not decoupled", () =>
    Effect.gen(function* () {
      const { stream, reply } = submitted(false)
      const { arrays, end } = yield* read(stream)
      reply(Result.succeed(numbered(7)))
      yield* end
      expect(arrays).toEqual([[7]])
    }),
  )

  it.effect("lets the 17th emit wait until the reader has taken", () =>
    Effect.gen(function* () {
      const { stream, emit, reply } = submitted()
      const first = yield* Effect.forkChild(Stream.runCollect(Stream.take(stream, 18)), { startImmediately: true })
      const emits = Array.from({ length: 18 }, (_, number) => Effect.runFork(emit(number)))
      const isOpen = () => emits.map((fiber) => fiber.pollUnsafe() === undefined)
      expect(isOpen().indexOf(true)).toBe(16)
      expect(yield* Fiber.join(first)).toEqual(emits.map((_, number) => number))
      expect(isOpen().includes(true)).toBe(false)
      reply(last)
    }),
  )

  it.effect("drops a waiting emit that is interrupted", () =>
    Effect.gen(function* () {
      const { stream, emit, reply } = submitted()
      const { arrays, end } = yield* read(stream)
      for (let number = 0; number < 16; number++) yield* emit(number)
      const waiting = Effect.runFork(emit(16))
      waiting.interruptUnsafe()
      reply(last)
      yield* end
      expect(arrays.flat()).toHaveLength(16)
    }),
  )

  it.effect("has the responses before a failure, then the failure", () =>
    Effect.gen(function* () {
      const { stream, emit, reply, counts } = submitted()
      const { arrays, end } = yield* read(stream)
      yield* emit(1)
      reply(Result.fail(broken("broke")))
      expect(failureOf(yield* end)).toBe("broke")
      expect(arrays).toEqual([[1]])
      expect(counts().cancelled).toBe(1)
    }),
  )

  it.effect("fails at once without responses", () =>
    Effect.gen(function* () {
      const { stream, reply } = submitted()
      const { end } = yield* read(stream)
      reply(Result.fail(broken("broke")))
      expect(failureOf(yield* end)).toBe("broke")
    }),
  )

  it.effect("ends at a response that cannot be decoded, after those before it, and cancels the request", () =>
    Effect.gen(function* () {
      const { stream, emit, counts } = submitted()
      const { arrays, end } = yield* read(stream)
      for (const number of [1, 2, -1, 4]) yield* emit(number)
      expect(failureOf(yield* end)).toBe("undecodable")
      expect(arrays).toEqual([[1, 2]])
      expect(counts().cancelled).toBe(1)
    }),
  )

  it.effect("cancels the request of a reader that leaves, and lets its emits go on", () =>
    Effect.gen(function* () {
      const { stream, emit, counts } = submitted()
      const { fiber, arrays } = yield* read(stream)
      for (let number = 0; number < 16; number++) yield* emit(number)
      const waiting = Effect.runFork(emit(16))
      yield* Fiber.interrupt(fiber)
      expect(counts().cancelled).toBe(1)
      yield* Fiber.join(waiting)
      yield* emit(17)
      expect(arrays.flat().includes(17)).toBe(false)
    }),
  )
})
