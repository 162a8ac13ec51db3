/** A model in TypeScript before one in Python, and the pipeline of both. */
import { readFileSync } from "node:fs"
import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
import { Model, Tensor } from "@nereid/core"
import { Python } from "@nereid/python"
import { Server } from "@nereid/server"
import { Effect, Layer } from "effect"
import { Classify, Topic, Words } from "./contract.ts"

export { Classify, Topic, Words }

/** More words than that decide nothing. */
const maxWords = 128

export const WordsLive = Model.each(
  Words,
  Effect.gen(function* () {
    const vocabulary: Readonly<Record<string, number>> = yield* Effect.sync(() =>
      JSON.parse(readFileSync(new URL("vocabulary.json", import.meta.url), "utf8")),
    )
    return ({ TEXT }) => {
      const words = TEXT.toLowerCase().match(/[a-z0-9]+/g) ?? []
      const ids = words.slice(0, maxWords).map((word) => BigInt(vocabulary[word] ?? 0))
      return Effect.succeed({
        ids: Tensor.make("INT64", [ids.length], BigInt64Array.from(ids)),
        count: BigInt(ids.length),
      })
    }
  }),
)

export const ClassifyLive = Python.layer(Classify, {
  file: new URL("topics.py", import.meta.url),
  function: "classify",
})

const topics = ["account", "delivery", "payment", "return"] as const

export const TopicLive = Model.each(
  Topic,
  Effect.gen(function* () {
    const [words, classify] = yield* Effect.all([Words, Classify])
    return Effect.fnUntraced(function* ({ TEXT }) {
      const { probabilities } = yield* classify.infer(yield* words.infer({ TEXT })) // shares batches with other calls
      const PROBABILITY = Math.max(...probabilities.data)
      const TOPIC = topics[probabilities.data.indexOf(PROBABILITY)] ?? topics[0]
      return { TOPIC, PROBABILITY }
    })
  }),
).pipe(Layer.provide([WordsLive, ClassifyLive]))

if (import.meta.main) {
  Server.layer([Topic, Words, Classify], { announce: true }).pipe(
    Layer.provide([TopicLive, WordsLive, ClassifyLive]),
    Layer.launch,
    NodeRuntime.runMain({ teardown: Server.teardown }),
  )
}
