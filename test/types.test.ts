/**
 * The programs of the design, as users write them, and what must not compile in them: a model without a layer, a
 * client's wrong input. `tsc` checks each `@ts-expect-error`. (Names, datatypes, ranks and labels: core's
 * Model.types.test.ts.)
 */
import { expect, it } from "@effect/vitest"
import { Client } from "@nereid/client"
import { Model, Tensor, type Errors } from "@nereid/core"
import * as Testing from "@nereid/core/Testing"
import { Onnx, type OnnxLoadError } from "@nereid/onnx"
import { type ServeError, Server } from "@nereid/server"
import { Effect, Layer } from "effect"

class Bert extends Model.Service<Bert>()("bert", {
  inputs: { input_ids: Tensor.INT64("sequence"), attention_mask: Tensor.INT64("sequence") },
  outputs: { logits: Tensor.FP32(2) },
  maxBatchSize: 32,
}) {}

class Sentiment extends Model.Service<Sentiment>()("sentiment", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { CLASS: Tensor.labels(["negative", "positive"]), PROB: Tensor.scalar("FP32") },
  maxBatchSize: 32,
}) {}

const SentimentLive = Model.each(
  Sentiment,
  Effect.gen(function* () {
    const bert = yield* Bert
    return Effect.fn("sentiment")(function* ({ TEXT }) {
      const input = Tensor.make("INT64", [TEXT.length], new BigInt64Array(TEXT.length))
      const { logits } = yield* bert.infer({ input_ids: input, attention_mask: input })
      const [negative = 0, positive = 0] = logits.data
      return positive > negative ? { CLASS: "positive", PROB: positive } : { CLASS: "negative", PROB: negative }
    })
  }),
)

const BertLive = Onnx.layer(Bert, { file: "bert.onnx", instances: 2 })

const served = Server.layer([Sentiment, Bert], { http: 8000, grpc: 8001 })

export const main: Layer.Layer<Server.Server, ServeError | OnnxLoadError> = served.pipe(
  Layer.provide(SentimentLive),
  Layer.provide(BertLive),
)

// @ts-expect-error Bert is not provided
// @effect-diagnostics-next-line missingLayerContext:off
export const open: Layer.Layer<Server.Server, ServeError> = served.pipe(Layer.provide(SentimentLive))

// @ts-expect-error only models can be served
export const noModel = () => Server.layer([Tensor])

const program = Effect.gen(function* () {
  const sentiment = yield* Sentiment
  return yield* sentiment.infer({ TEXT: "a great movie" })
})

type Output = { readonly CLASS: "negative" | "positive"; readonly PROB: number }

export const remote: Effect.Effect<Output, Client.InvalidUrl | Errors.InferenceError> = program.pipe(
  Effect.provide(Client.layer(Sentiment, { url: "grpc://models:8001" })),
)

// @ts-expect-error the model of another class is provided
// @effect-diagnostics-next-line missingEffectContext:off
export const another: Effect.Effect<Output, Client.InvalidUrl | Errors.InferenceError> = program.pipe(
  Effect.provide(Client.layer(Bert, { url: "grpc://models:8001" })),
)

export const withoutEffect = async () => {
  await using sentiment = await Client.connect(Sentiment, { url: "http://models:8000" })
  const response: Output = await sentiment.infer({ TEXT: "a great movie" })
  // @ts-expect-error wrong input name
  await sentiment.infer({ text: "a great movie" })
  // @ts-expect-error no such label
  return response.CLASS === "neutral"
}

export const background = async () => {
  const models = SentimentLive.pipe(Layer.provideMerge(BertLive))
  await using server = await Server.start([Sentiment, Bert], models, { http: 0, grpc: { host: "::1", port: 0 } })
  const ports: ReadonlyArray<number> = [server.http.port, server.grpc.port, server.metrics.port]
  // @ts-expect-error Bert is not provided: to the server, and to Sentiment
  // @effect-diagnostics-next-line missingLayerContext:off
  await Server.start([Sentiment, Bert], SentimentLive)
  // @ts-expect-error Bert is not provided to the server
  await Server.start([Sentiment, Bert], SentimentLive.pipe(Layer.provide(BertLive)))
  // @ts-expect-error only models can be served
  await Server.start([Tensor], models)
  // @ts-expect-error no such option
  await Server.start([Sentiment], models, { http: 0, gprc: 0 })
  const { http, grpc, metrics } = await Server.start([Sentiment], models, { grpc: false, metrics: anywhere() })
  const port: number = http.port
  // @ts-expect-error it is turned off
  void grpc.port
  // @ts-expect-error it may be turned off
  void metrics.port
  const all = await Server.start([Sentiment], models, { port: 8000 })
  // @ts-expect-error it may be that of everything
  void all.http.port
  return [...ports, port, all.port.port]
}

declare const anywhere: () => Server.Listen

type Fields = (typeof Sentiment)["definition"]

export const tested = async () => {
  const sentiment = await Testing.start(SentimentLive.pipe(Layer.provide(BertLive)))
  const { PROB }: Output = await sentiment.infer({ TEXT: "a great movie" })
  // @ts-expect-error wrong input name
  await sentiment.infer({ text: "a great movie" })
  // @ts-expect-error Bert is not provided
  // @effect-diagnostics-next-line missingLayerContext:off
  await Testing.start(SentimentLive)
  // A started model is assignable to a client.
  const client: Client.PromiseClient<Fields["inputs"], Fields["outputs"]> = sentiment
  return { client, PROB }
}

it("the programs of the design build their layers", () => {
  expect(Layer.isLayer(main)).toBe(true)
})
