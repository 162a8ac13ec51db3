/** The writer, on any decoder: each caller has a session, and all of them share the decoder's batches. */
import { Model } from "@nereid/core"
import { Effect, Random, Stream } from "effect"
import * as Alphabet from "./Alphabet.ts"
import { Decoder, Writer } from "./contract.ts"
import * as Sampling from "./Sampling.ts"

export const layer = Model.stream(
  Writer,
  Effect.gen(function* () {
    const decoder = yield* Decoder
    return ({ PROMPT }, { parameters: { temperature, seed, max_characters } }) => {
      const story = Stream.unwrap(
        Effect.gen(function* () {
          const session = yield* decoder.session() // until the stream ends, or its caller leaves
          const step = (token: number) => session.infer({ TOKEN: BigInt(token) })
          const random = yield* Random.Random
          const prompt = [Alphabet.boundary, ...(Alphabet.tokens(PROMPT) ?? [])]
          for (const token of prompt.slice(0, -1)) yield* step(token)
          return Stream.unfold(prompt.at(-1) ?? Alphabet.boundary, (token) =>
            // In a batch with the steps of other callers.
            Effect.map(step(token), ({ LOGITS }) => {
              const next = Sampling.choose(LOGITS.data, temperature, random.nextDoubleUnsafe())
              return next === Alphabet.boundary ? undefined : ([{ CHARACTER: Alphabet.character(next) }, next] as const)
            }),
          )
        }),
      ).pipe(Stream.take(max_characters))
      return seed === undefined
        ? story
        : Stream.provideServiceEffect(story, Random.Random, Random.withSeed(Random.Random, seed))
    }
  }),
)
