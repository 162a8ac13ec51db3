import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { InvalidRequest } from "../error/InferenceError.ts"
import * as Model from "../Model.ts"
import { RequestContext } from "./RequestContext.ts"
import { infer, stream } from "../running/CallableModel.ts"
import * as Tensor from "../Tensor.ts"

class Count extends Model.Service<Count>()("count", {
  inputs: { TO: Tensor.scalar("INT32") },
  outputs: { N: Tensor.scalar("INT32") },
}) {}

class Words extends Model.Service<Words>()("words", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { WORD: Tensor.utf8() },
  maxBatchSize: 2,
}) {}

const upTo = (to: number) => Stream.range(1, to).pipe(Stream.map((N) => ({ N })))

const count = Model.stream(Count, ({ TO }) => {
  if (TO === 13) return Stream.die(new Error("out of fingers"))
  if (TO < 0) return Stream.concat(upTo(2), Stream.fail(new InvalidRequest({ message: "no way down" })))
  return TO === 0 ? Stream.empty : upTo(TO)
})

const words = Model.stream(Words, ({ TEXT }) => Stream.fromIterable(TEXT.split(" ").map((WORD) => ({ WORD }))))

it.effect("one sample, any number of responses, in order", () =>
  Effect.gen(function* () {
    const model = yield* Count
    expect(yield* Stream.runCollect(model.stream({ TO: 3 }))).toEqual([{ N: 1 }, { N: 2 }, { N: 3 }])
    expect(yield* Stream.runCollect(model.stream({ TO: 0 }))).toEqual([])
    const many = yield* Stream.runCollect(model.stream({ TO: 1000 }))
    expect(many.map(({ N }) => N)).toEqual(Array.from({ length: 1000 }, (_, index) => index + 1))
    const received = yield* Words
    expect(yield* Stream.runCollect(received.stream({ TEXT: "to be" }))).toEqual([{ WORD: "to" }, { WORD: "be" }])
  }).pipe(Effect.provide(Layer.merge(count, words))),
)

it.effect("a failure comes behind the responses before it; a defect ends it too; the model goes on", () =>
  Effect.gen(function* () {
    const model = yield* Count
    const seen: Array<number> = []
    const error = yield* model.stream({ TO: -1 }).pipe(
      Stream.runForEach(({ N }) => Effect.sync(() => seen.push(N))),
      Effect.flip,
    )
    expect(seen).toEqual([1, 2])
    expect(error).toMatchObject({ _tag: "InvalidRequest", message: "no way down" })
    const defect = yield* Effect.flip(Stream.runCollect(model.stream({ TO: 13 })))
    expect(defect).toMatchObject({
      _tag: "ExecutionFailed",
      message: "Failed to process the request(s) for model 'count_0', message: out of fingers",
    })
    expect(yield* Stream.runCollect(model.stream({ TO: 1 }))).toEqual([{ N: 1 }])
  }).pipe(Effect.provide(count)),
)

it.effect("infer takes exactly one response", () =>
  Effect.gen(function* () {
    const model = yield* Count
    expect(yield* model.infer({ TO: 1 })).toEqual({ N: 1 })
    const none = yield* Effect.flip(model.infer({ TO: 0 }))
    expect(none).toMatchObject({ _tag: "ExecutionFailed", message: "expected a single response, got 0" })
  }).pipe(Effect.provide(count)),
)

it.effect("infer ends a model that has more than one response, perhaps without end", () =>
  Effect.gen(function* () {
    const model = yield* Count
    const error = yield* Effect.flip(model.infer({ TO: 1 }))
    expect(error).toMatchObject({ _tag: "ExecutionFailed", message: "expected a single response, got 2 or more" })
    expect(model.model.description.statistics.failures.CANCELED).toBe(1)
  }).pipe(Effect.provide(Model.stream(Count, () => Stream.forever(upTo(1))))),
)

it.effect("a request has one row", () =>
  Effect.gen(function* () {
    const { model } = yield* Words
    const TEXT = Tensor.make("BYTES", [2, 1], [new Uint8Array(1), new Uint8Array(1)])
    const request = { id: "7", inputs: [TEXT], rows: 2, parameters: {}, deadline: undefined }
    expect((yield* Effect.flip(infer(model.calls, request))).message).toBe(
      "[request id: 7] inference request batch-size must be <= 1 for 'words', got 2",
    )
  }).pipe(Effect.provide(words)),
)

it.effect("a slow reader slows the model, and one that leaves stops it", () =>
  Effect.gen(function* () {
    let produced = 0
    const stopped = yield* Deferred.make<void>()
    const endless = Model.stream(Count, () =>
      Stream.fromEffectRepeat(Effect.sync(() => ({ N: produced++ }))).pipe(
        Stream.ensuring(Deferred.succeed(stopped, undefined)),
      ),
    )
    yield* Effect.gen(function* () {
      const model = yield* Count
      const reading = yield* model.stream({ TO: 1 }).pipe(
        Stream.runForEach(() => Effect.never),
        Effect.forkChild,
      )
      // Everything that can run has run.
      yield* TestClock.adjust(1000)
      expect(produced).toBeGreaterThan(0)
      expect(produced).toBeLessThan(64)
      yield* Fiber.interrupt(reading)
      yield* Deferred.await(stopped)
      expect(model.model.description.statistics.failures.CANCELED).toBe(1)
      expect(model.model.life.pending()).toBe(0)
    }).pipe(Effect.provide(endless))
  }),
)

it.effect("as many requests at once as a batch has rows, and a deadline ends its stream", () =>
  Effect.gen(function* () {
    let open = 0
    const hanging = Model.stream(Words, ({ TEXT }) =>
      Stream.unwrap(
        Effect.sync(() => {
          open += 1
          return Stream.concat(Stream.make({ WORD: TEXT }), Stream.never)
        }),
      ),
    )
    yield* Effect.gen(function* () {
      const model = yield* Words
      const call = (TEXT: string) =>
        Effect.forkChild(Effect.flip(Stream.runDrain(model.stream({ TEXT }, { timeout: 50 }))), {
          startImmediately: true,
        })
      const pending = yield* Effect.all([call("a"), call("b"), call("c")])
      yield* TestClock.adjust(10)
      expect([open, model.model.life.pending()]).toEqual([2, 1])
      yield* TestClock.adjust(40)
      expect((yield* Effect.all(pending.map(Fiber.join))).map(({ _tag }) => _tag)).toEqual(
        Array.from({ length: 3 }, () => "DeadlineExceeded"),
      )
    }).pipe(Effect.provide(hanging))
  }),
)

it.effect("a request does not wait for a batch", () =>
  Effect.gen(function* () {
    class Patient extends Model.Service<Patient>()("patient", {
      inputs: { TO: Tensor.scalar("INT32") },
      outputs: { N: Tensor.scalar("INT32") },
      maxBatchSize: 4,
      batching: { maxQueueDelay: "1 hour", preferredBatchSizes: [2, 4] },
    }) {}
    yield* Effect.gen(function* () {
      const model = yield* Patient
      expect(yield* Stream.runCollect(model.stream({ TO: 2 }))).toEqual([{ N: 1 }, { N: 2 }])
    }).pipe(Effect.provide(Model.stream(Patient, ({ TO }) => upTo(TO))))
  }),
)

it.effect("each response is counted at its place", () =>
  Effect.gen(function* () {
    const { model, stream } = yield* Count
    yield* Stream.runDrain(stream({ TO: 2 }))
    yield* Stream.runDrain(stream({ TO: 1 }))
    yield* Effect.flip(Stream.runDrain(stream({ TO: -1 })))
    const { responses, inferenceCount, executionCount, failures } = model.description.statistics
    const counts = [...responses].map(
      ([index, { success, fail, emptyResponse, cancel, computeInfer, computeOutput }]) =>
        [index, success, fail, emptyResponse, cancel, computeInfer, computeOutput].map((each) =>
          typeof each === "number" ? each : each.count,
        ),
    )
    expect(counts).toEqual([
      [0, 3, 0, 0, 0, 3, 3],
      [1, 2, 0, 1, 0, 3, 2],
      [2, 0, 1, 1, 0, 2, 0],
    ])
    expect([inferenceCount, executionCount, failures.BACKEND]).toEqual([2, 2, 1])
  }).pipe(Effect.provide(count)),
)

it.effect("a handler knows its request, and sets parameters of the responses behind", () =>
  Effect.gen(function* () {
    const { model } = yield* Words
    const seen: Array<unknown> = []
    const TEXT = Tensor.make("BYTES", [1, 1], [new TextEncoder().encode("x y")])
    const request = { id: "7", inputs: [TEXT], rows: 1, parameters: { n: 1n }, deadline: undefined }
    yield* Stream.runForEach(stream(model.calls, request), ({ parameters }) => Effect.sync(() => seen.push(parameters)))
    expect(seen).toEqual([{}, { word: "7: x", n: 1n }])
  }).pipe(
    Effect.provide(
      Model.stream(Words, ({ TEXT }) =>
        Stream.fromIterable(TEXT.split(" ")).pipe(
          Stream.tap((word) =>
            Effect.gen(function* () {
              const { id, parameters, setParameter } = yield* RequestContext
              if (word !== "y") return
              yield* setParameter("word", `${id}: x`)
              yield* setParameter("n", parameters["n"] ?? 0n)
            }),
          ),
          Stream.map((WORD) => ({ WORD })),
        ),
      ),
    ),
  ),
)

it.effect("a model that answers once streams one response", () =>
  Effect.gen(function* () {
    const model = yield* Count
    expect(yield* Stream.runCollect(model.stream({ TO: 4 }))).toEqual([{ N: 5 }])
    expect(model.model.calls.decoupled).toBe(false)
    // Those by response are for decoupled models only.
    expect([...model.model.description.statistics.responses]).toEqual([])
  }).pipe(Effect.provide(Model.each(Count, ({ TO }) => Effect.succeed({ N: TO + 1 })))),
)

it.effect("a generator, an asynchronous one and an array are handlers too; what they throw is a failure", () =>
  Effect.gen(function* () {
    const texts = (model: Model.Inference<typeof Words.definition.inputs, typeof Words.definition.outputs>) =>
      model.stream({ TEXT: "to be" }).pipe(
        Stream.map(({ WORD }) => WORD),
        Stream.catch(({ _tag, message }) => Stream.make(`${_tag}: ${message}`)),
        Stream.runCollect,
      )
    const failed = "ExecutionFailed: Failed to process the request(s) for model 'words_0', message: lost"
    const responses = (layer: Layer.Layer<Words>) =>
      Effect.provide(Effect.flatMap(Words, texts), layer, { local: true })
    const array = Model.stream(Words, ({ TEXT }) => TEXT.split(" ").map((WORD) => ({ WORD })))
    expect(yield* responses(array)).toEqual(["to", "be"])
    const generator = Model.stream(Words, function* ({ TEXT }) {
      for (const WORD of TEXT.split(" ")) yield { WORD }
      throw new Error("lost")
    })
    expect(yield* responses(generator)).toEqual(["to", "be", failed])
    const asynchronous = Model.stream(Words, async function* ({ TEXT }, { parameters }) {
      for (const WORD of TEXT.split(" ")) yield await Promise.resolve({ WORD })
      throw new InvalidRequest({ message: `no ${Object.keys(parameters).length} more` })
    })
    expect(yield* responses(asynchronous)).toEqual(["to", "be", "InvalidRequest: no 0 more"])
    const throwing = Model.stream(Words, () => {
      throw new Error("lost")
    })
    expect(yield* responses(throwing)).toEqual([failed])
  }),
)

it.effect("an iterator is pulled no faster than its reader takes, and returns when it leaves", () =>
  Effect.gen(function* () {
    let produced = 0
    const returned = yield* Deferred.make<boolean>()
    const endless = Model.stream(Count, function* (_, { signal }) {
      try {
        for (;;) yield { N: (produced += 1) }
      } finally {
        queueMicrotask(() =>
          Deferred.doneUnsafe(
            returned,
            Effect.sync(() => signal.aborted),
          ),
        )
      }
    })
    yield* Effect.gen(function* () {
      const model = yield* Count
      const first = yield* Stream.runCollect(Stream.take(model.stream({ TO: 1 }), 2))
      expect(first).toEqual([{ N: 1 }, { N: 2 }])
      expect(yield* Deferred.await(returned)).toBe(true)
      expect(produced).toBeLessThan(40)
    }).pipe(Effect.provide(endless))
  }),
)

it.live("the signal tells a waiting asynchronous iterator that the reader has left", () =>
  Effect.gen(function* () {
    const received = yield* Deferred.make<void>()
    const waiting = Model.stream(Count, async function* (_, { signal }) {
      yield { N: 1 }
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()))
      Deferred.doneUnsafe(received, Effect.void)
    })
    yield* Effect.gen(function* () {
      const model = yield* Count
      expect(yield* Stream.runCollect(Stream.take(model.stream({ TO: 1 }), 1))).toEqual([{ N: 1 }])
      yield* Deferred.await(received)
    }).pipe(Effect.provide(waiting))
  }),
)
