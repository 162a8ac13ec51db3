/**
 * All batching options at once, with concurrent requests of every kind: each receives its own rows from any batch, and
 * counts once.
 */
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Result } from "effect"
import { InvalidRequest } from "../error/InferenceError.ts"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import * as Testing from "../Testing.ts"

class Mix extends Model.Service<Mix>()("mix", {
  inputs: {
    x: Tensor.INT32("n", 2),
    texts: Tensor.optional(Tensor.BYTES("n"), { default: "-" }),
    scale: Tensor.optional(Tensor.scalar("INT32"), { default: 1 }),
    extra: Tensor.optional(Tensor.INT32(1)),
  },
  outputs: { y: Tensor.INT32("n", 2), texts: Tensor.BYTES("n"), count: Tensor.scalar("INT32") },
  maxBatchSize: 16,
  batching: {
    maxQueueDelay: "1 millis",
    preferredBatchSizes: [4, 8],
    padTo: [2, 8],
    ragged: { n: { buckets: [2, 4, 8], pad: { x: 1000, texts: "padding" } } },
    groupBy: { inputs: ["scale"], parameters: ["language"] },
    onFailure: "bisect",
  },
}) {}

type Inputs = (typeof Mix)["definition"]["inputs"]

/** Multiplies each row, and returns its length. */
const MixLive = Model.batch(
  Mix,
  ({ x, texts, extra }, { value, extents, requests }) => {
    const [rows, length] = x.shape
    expect([2, 8, 16]).toContain(rows)
    expect(new Set(requests.map(({ parameters }) => parameters["language"])).size).toBe(1)
    if (extra !== undefined) expect(extra.shape[0]).toBe(rows)
    const lengths = extents("n")
    for (let row = 0; row < rows; row++) {
      const own = x.data.subarray(row * length * 2, (row + 1) * length * 2)
      expect(own.subarray((lengths[row] ?? 0) * 2).every((one) => one === 1000)).toBe(true)
      if (own.includes(-1)) throw new InvalidRequest({ message: "poison" })
    }
    const scale = value("scale")
    return {
      y: Tensor.make(
        "INT32",
        x.shape,
        x.data.map((one) => one * scale),
      ),
      texts,
      count: Tensor.make("INT32", [rows, 1], Int32Array.from(lengths)),
    }
  },
  { instances: 2 },
)

/** The same numbers in each run. */
const random = () => {
  let state = 42
  return (below: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const bytes = (text: string) => new TextEncoder().encode(text)

it.effect("1,000 requests of any rows, lengths, values and ends", () =>
  Effect.gen(function* () {
    const model = yield* Testing.model(MixLive)
    const pick = random()
    const submitted: Array<Effect.Effect<void>> = []
    let [poisoned, left] = [0, 0]
    for (let index = 0; index < 1000; index++) {
      const [rows, length] = [1 + pick(4), pick(10)]
      const poison = length > 0 && pick(20) === 0
      const x = Int32Array.from({ length: rows * length * 2 }, () => pick(100))
      if (poison) x[pick(x.length)] = -1
      const scales = Int32Array.from({ length: rows }, () => 1 + (pick(5) === 0 ? pick(3) : 0))
      const words = Array.from({ length: rows * length }, () => bytes("x".repeat(pick(5))))
      const [hasScale, hasTexts, hasExtra] = [pick(2) === 0, pick(2) === 0, pick(4) === 0]
      const batch: Model.InputBatch<Inputs> = {
        x: Tensor.make("INT32", [rows, length, 2], x),
        ...(hasScale ? { scale: Tensor.make("INT32", [rows, 1], scales) } : {}),
        ...(hasTexts ? { texts: Tensor.make("BYTES", [rows, length], words) } : {}),
        ...(hasExtra ? { extra: Tensor.make("INT32", [rows, 1], new Int32Array(rows)) } : {}),
      }
      const parameters = pick(3) === 0 ? { language: "de" } : undefined
      const fiber = yield* Effect.forkChild(
        Effect.result(model.inferBatch(batch, parameters === undefined ? {} : { parameters })),
        { startImmediately: true },
      )
      if (pick(10) === 0) {
        left += 1
        submitted.push(Effect.asVoid(Fiber.interrupt(fiber)))
        continue
      }
      if (poison) poisoned += 1
      submitted.push(
        Effect.map(Fiber.join(fiber), (outcome) => {
          if (Result.isFailure(outcome)) return expect([poison, outcome.failure.message]).toEqual([true, "poison"])
          expect(poison).toBe(false)
          const { y, texts, count } = outcome.success
          expect([y.shape, texts.shape]).toEqual([
            [rows, length, 2],
            [rows, length],
          ])
          expect([...y.data]).toEqual(
            Array.from(x, (one, place) => one * (hasScale ? (scales[Math.floor(place / (length * 2))] ?? 0) : 1)),
          )
          expect(texts.data).toEqual(hasTexts ? words : words.map(() => bytes("-")))
          expect([...count.data]).toEqual(Array(rows).fill(length))
        }),
      )
      // Some requests of each portion are cancelled before their execution, some after.
      if (pick(50) === 0) yield* Testing.advance("1 millis")
    }
    yield* Effect.all(submitted, { concurrency: "unbounded" }).pipe(
      Effect.raceFirst(Effect.forever(Testing.advance("1 millis"))),
    )
    const { success, fail, failures } = model.model.description.statistics
    expect(success.count + fail.count).toBe(1000)
    expect(failures.BACKEND).toBeGreaterThanOrEqual(poisoned)
    expect(failures.CANCELED).toBeLessThanOrEqual(left)
    expect([failures.REJECTED, failures.OTHER, model.model.life.pending()]).toEqual([0, 0, 0])
  }),
)
