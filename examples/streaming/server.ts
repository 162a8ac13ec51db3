/** The model in code: it learns its text at start, and answers with a stream, word by word. */
import { readFile } from "node:fs/promises"
import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
import { Model } from "@nereid/core"
import { Server } from "@nereid/server"
import { Effect, Layer, Random, Stream } from "effect"
import * as Bigrams from "./Bigrams.ts"
import { Words } from "./contract.ts"

export { Words }

const file = new URL("lighthouse.txt", import.meta.url)

export const WordsLive = Model.stream(
  Words,
  Effect.gen(function* () {
    const bigrams = yield* Effect.tryPromise(async () => Bigrams.learn(await readFile(file, "utf8")))
    return ({ PROMPT, MAX_WORDS = 20, SEED }) => {
      const words = Stream.unfold(PROMPT, (before) =>
        Effect.map(Random.choice(Bigrams.after(bigrams, before)), (word) => [word, word] as const),
      ).pipe(
        Stream.take(MAX_WORDS),
        Stream.takeUntil(Bigrams.endsSentence),
        Stream.map((WORD) => ({ WORD })),
      )
      if (SEED === undefined) return words
      return Stream.provideServiceEffect(words, Random.Random, Random.withSeed(Random.Random, SEED))
    }
  }),
)

if (import.meta.main) {
  Server.layer([Words]).pipe(Layer.provide(WordsLive), Layer.launch, NodeRuntime.runMain({ teardown: Server.teardown }))
}
