/** The streaming example: its Markov chain, the model in process, and the real /generate_stream. */
import { describe, expect, it } from "@effect/vitest"
import type { Model } from "@nereid/core"
import { Server } from "@nereid/server"
import { Effect, Layer, Stream } from "effect"
import * as Bigrams from "./Bigrams.ts"
import { Words, WordsLive } from "./server.ts"

describe("bigrams", () => {
  const bigrams = Bigrams.learn("The cat sat. The cat ran!\nA dog")

  it("a word is followed by what followed it, as often as it did", () => {
    expect(Bigrams.after(bigrams, "The")).toEqual(["cat", "cat"])
    expect(Bigrams.after(bigrams, "look: The  cat ")).toEqual(["sat.", "ran!"])
  })

  it("a new sentence begins behind the end of one, nothing, the last word, and words that are not known", () => {
    for (const text of ["sat.", "", "A dog", "What?", "the"]) {
      expect(Bigrams.after(bigrams, text)).toEqual(["The", "The", "A"])
    }
  })

  it("nothing can be learnt from nothing", () => {
    expect(() => Bigrams.learn(" \n")).toThrow("without words")
  })
})

const infer = Effect.fnUntraced(function* (sample: Model.Sample<typeof Words.definition.inputs>) {
  const words = yield* Words
  return (yield* Stream.runCollect(words.stream(sample))).map(({ WORD }) => WORD)
})

describe("in process", () => {
  it.effect("the same seed gives the same words, another one gives others", () =>
    Effect.gen(function* () {
      const [once, repeated, other] = yield* Effect.all(
        [1, 1, 2].map((SEED) => infer({ PROMPT: "In the night", SEED })),
        { concurrency: "unbounded" },
      )
      expect(once).toEqual(repeated)
      expect(once).not.toEqual(other)
    }).pipe(Effect.provide(WordsLive)),
  )

  it.effect("stops at the end of a sentence, or at MAX_WORDS", () =>
    Effect.gen(function* () {
      const sentence = yield* infer({ PROMPT: "In the night", SEED: 1, MAX_WORDS: 1000 })
      expect(sentence.map(Bigrams.endsSentence)).toEqual([...sentence.slice(1).map(() => false), true])
      expect(sentence.length).toBeGreaterThan(3)
      expect(yield* infer({ PROMPT: "In the night", SEED: 1, MAX_WORDS: 3 })).toEqual(sentence.slice(0, 3))
    }).pipe(Effect.provide(WordsLive)),
  )

  it.effect("any prompt has a next word", () =>
    Effect.gen(function* () {
      for (const PROMPT of ["", " ", "never seen", "In the morning.", "lamp"]) {
        expect(yield* infer({ PROMPT, MAX_WORDS: 1 })).toHaveLength(1)
      }
    }).pipe(Effect.provide(WordsLive)),
  )
})

describe("over generate_stream", () => {
  const layer = Server.layer([Words], { http: { host: "127.0.0.1", port: 0 }, grpc: false, metrics: false }).pipe(
    Layer.provideMerge(WordsLive),
  )

  const post = Effect.fnUntraced(function* (body: object) {
    const { http } = yield* Server.Server
    return yield* Effect.promise(async () => {
      const url = `http://127.0.0.1:${http?.port}/v2/models/words/generate_stream`
      const headers = { connection: "close" }
      const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) })
      return { status: response.status, tag: response.headers.get("nereid-error"), text: await response.text() }
    })
  })

  it.live("each word is an event, the same ones as in process", () =>
    Effect.gen(function* () {
      const request = { PROMPT: "In the night", SEED: 7, MAX_WORDS: 5 }
      const events = (yield* infer(request)).map(
        (WORD) => `data: ${JSON.stringify({ model_name: "words", model_version: "1", WORD })}\n\n`,
      )
      expect(yield* post(request)).toMatchObject({ status: 200, text: events.join("") })
    }).pipe(Effect.provide(layer)),
  )

  it.live.each([0, -1, 1001])("MAX_WORDS of %d is an InvalidRequest with the allowed range", (MAX_WORDS) =>
    Effect.gen(function* () {
      const { status, tag, text } = yield* post({ PROMPT: "In the night", MAX_WORDS })
      expect({ status, tag }).toEqual({ status: 400, tag: "InvalidRequest" })
      expect(text).toContain("input 'MAX_WORDS' of model 'words': Expected a value between 1 and 1000")
    }).pipe(Effect.provide(layer)),
  )
})
