/** The writer and its decoder: alphabet, sampling, stories of callers that share batches, and their sessions. */
import { readFileSync, statSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Layer, Stream } from "effect"
import * as Alphabet from "./Alphabet.ts"
import * as Sampling from "./Sampling.ts"
import { Decoder, DecoderLive, Writer, WriterLive } from "./server.ts"
import * as Writing from "./Writing.ts"

const read = (name: string) => readFileSync(new URL(name, import.meta.url), "utf8")

it("the alphabet is that of the training", () => {
  expect(read("training/corpus.py")).toContain(`CHARACTERS = ${JSON.stringify(Alphabet.characters)}`)
  expect(Alphabet.tokens("a b")?.map(Alphabet.character).join("")).toBe("a b")
  expect(Alphabet.tokens("a?")).toBeUndefined()
})

it("the network is small enough to be committed", () => {
  expect(statSync(new URL("decoder.onnx", import.meta.url)).size).toBeLessThan(1_000_000)
})

describe("sampling", () => {
  const logits = [Math.log(1), Math.log(2), Math.log(1)]

  it("a token is as likely as its logit says", () => {
    expect([0, 0.24, 0.26, 0.74, 0.76, 0.99].map((random) => Sampling.choose(logits, 1, random))).toEqual([
      0, 0, 1, 1, 2, 2,
    ])
  })

  it("low temperatures prefer the likeliest token, and 0 always chooses it", () => {
    expect([0.01, 0.99].map((random) => Sampling.choose(logits, 0.05, random))).toEqual([1, 1])
    expect([0.01, 0.99].map((random) => Sampling.choose(logits, 0, random))).toEqual([1, 1])
  })
})

const layer = Layer.provideMerge(WriterLive, DecoderLive)

interface Options {
  readonly temperature?: number
  readonly max_characters?: number
}

const write = Effect.fnUntraced(function* (PROMPT: string, seed: number, options: Options = {}) {
  const writer = yield* Writer
  const characters = yield* Stream.runCollect(writer.stream({ PROMPT }, { parameters: { seed, ...options } }))
  return characters.map(({ CHARACTER }) => CHARACTER).join("")
})

describe("the writer", () => {
  it.live("streams one character after another, to the end of a story", () =>
    Effect.gen(function* () {
      const writer = yield* Writer
      const parameters = { seed: 1 }
      const characters = yield* Stream.runCollect(writer.stream({ PROMPT: "Ada was a baker" }, { parameters }))
      expect(characters.every(({ CHARACTER }) => CHARACTER.length === 1)).toBe(true)
      const text = characters.map(({ CHARACTER }) => CHARACTER).join("")
      expect(text).toMatch(/^ who lived near the \w+\. .*\.$/)
    }).pipe(Effect.provide(layer)),
  )

  it.live("texts may be longer than the caches", () =>
    Effect.gen(function* () {
      const text = yield* write("", 2)
      expect(text.length).toBeGreaterThan(180) // of which the caches have 128
      const words = new Set(read("training/corpus.py").match(/[A-Za-z]+/g))
      const known = text.match(/[A-Za-z]+/g)?.filter((word) => words.has(word)) ?? []
      expect(known.length).toBeGreaterThan(0.95 * text.split(" ").length)
    }).pipe(Effect.provide(layer)),
  )

  it.live("a seed gives the same text alone as among seven others", () =>
    Effect.gen(function* () {
      const seeds = [1, 2, 3, 4, 5, 6, 7, 8]
      const alone = yield* Effect.forEach(seeds, (seed) => write("The", seed, { max_characters: 80 }))
      expect(new Set(alone).size).toBe(8)
      const { statistics } = (yield* Decoder).model.description
      expect([...statistics.batches.keys()]).toEqual([1])
      const together = yield* Effect.forEach(seeds, (seed) => write("The", seed, { max_characters: 80 }), {
        concurrency: "unbounded",
      })
      expect(together).toEqual(alone)
      expect(Math.max(...statistics.batches.keys())).toBe(8)
    }).pipe(Effect.provide(layer)),
  )

  it.live("a caller that is done leaves the batch, and one that comes joins it", () =>
    Effect.gen(function* () {
      const lengths = [10, 20, 200, 200]
      const texts = yield* Effect.forEach(
        lengths,
        (max_characters, seed) => write("", seed, { max_characters: max_characters }),
        { concurrency: "unbounded" },
      )
      expect(texts.map(({ length }) => length)).toEqual(lengths)
      const { statistics } = (yield* Decoder).model.description
      // 430 characters in hardly more steps than the longest text has.
      expect(statistics.inferenceCount).toBe(430)
      expect(statistics.executionCount).toBeLessThan(300)
    }).pipe(Effect.provide(layer)),
  )

  it.live("the same temperature of 0 gives the same text for every seed", () =>
    Effect.gen(function* () {
      const [one, other] = yield* Effect.forEach([1, 2], (seed) => write("", seed, { temperature: 0 }))
      expect(one).toBe(other)
    }).pipe(Effect.provide(layer)),
  )

  it.live("sessions end with their stories, and when callers leave", () => {
    let [opened, open] = [0, 0]
    const counting = Layer.effect(
      Decoder,
      Effect.map(Decoder, (decoder) =>
        Decoder.of({
          ...decoder,
          session: (options) => {
            const count = Effect.acquireRelease(
              Effect.sync(() => [(opened += 1), (open += 1)]),
              () => Effect.sync(() => (open -= 1)),
            )
            return Effect.andThen(count, decoder.session(options))
          },
        }),
      ),
    ).pipe(Layer.provide(DecoderLive))
    return Effect.gen(function* () {
      yield* write("", 1, { max_characters: 5 })
      const writer = yield* Writer
      yield* writer.stream({ PROMPT: "" }, { parameters: { seed: 1 } }).pipe(Stream.take(3), Stream.runDrain)
      expect({ opened, open }).toEqual({ opened: 2, open: 0 })
    }).pipe(Effect.provide(Layer.provide(Writing.layer, counting)))
  })

  it.live("a prompt with other characters is refused", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(write("What?", 1))
      expect(Exit.isFailure(exit) && String(exit.cause)).toContain("Expected letters, spaces, commas and stops")
    }).pipe(Effect.provide(layer)),
  )
})
