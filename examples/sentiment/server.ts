/** Three models, in code and in ONNX Runtime, and an ensemble of them. */
import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
import { Logits, Model, Tensor } from "@nereid/core"
import { Onnx } from "@nereid/onnx"
import { Server } from "@nereid/server"
import { Effect, Layer } from "effect"
import { Bert, Sentiment, Tokenize, Verdict } from "./contract.ts"
import * as Tokenizer from "./Tokenizer.ts"

export { Bert, Sentiment, Tokenize, Verdict }

export const TokenizeLive = Model.each(
  Tokenize,
  Effect.gen(function* () {
    const tokenizer = yield* Effect.tryPromise(() => Tokenizer.load(new URL("tokenizer.json", import.meta.url)))
    return ({ TEXT }) => {
      const ids = BigInt64Array.from(tokenizer.encode(TEXT), BigInt)
      return Effect.succeed({
        input_ids: Tensor.make("INT64", [ids.length], ids),
        attention_mask: Tensor.make("INT64", [ids.length], new BigInt64Array(ids.length).fill(1n)),
      })
    }
  }),
)

export const BertLive = Onnx.layer(Bert, { file: new URL("bert.onnx", import.meta.url) })

export const VerdictLive = Model.each(Verdict, ({ logits }) => {
  const [negative = 0, positive = 0] = Logits.softmax(logits.data)
  return positive > negative ? { CLASS: "positive", PROB: positive } : { CLASS: "negative", PROB: negative }
})

export const SentimentLive = Model.each(
  Sentiment,
  Effect.gen(function* () {
    const [tokenize, bert, verdict] = yield* Effect.all([Tokenize, Bert, Verdict])
    return Effect.fnUntraced(function* ({ TEXT }) {
      const tokens = yield* tokenize.infer({ TEXT })
      const { logits } = yield* bert.infer(tokens) // in a batch with everyone's who asks now
      return yield* verdict.infer({ logits })
    })
  }),
).pipe(Layer.provide([TokenizeLive, BertLive, VerdictLive]))

if (import.meta.main) {
  Server.layer([Sentiment, Tokenize, Bert, Verdict]).pipe(
    Layer.provide([SentimentLive, TokenizeLive, BertLive, VerdictLive]),
    Layer.launch,
    NodeRuntime.runMain({ teardown: Server.teardown }),
  )
}
