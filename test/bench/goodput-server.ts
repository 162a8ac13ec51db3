/**
 * The server of goodput.ts and fairness.ts, run as a child: a model without computation, an ONNX model, a pipeline of
 * models, and a model that waits.
 */
import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
import { Server } from "@nereid/server"
import { Effect, Layer } from "effect"
import {
  AddSub,
  AddSubLive,
  Bert,
  BertLive,
  Digits,
  DigitsLive,
  Sentiment,
  SentimentLive,
  Tokenize,
  TokenizeLive,
  Verdict,
  VerdictLive,
} from "../../examples/models.ts"
import * as Deep from "./deep.ts"
import { Steady, SteadyLive } from "./models.ts"
import { report } from "./Reporter.ts"

const local = { host: "127.0.0.1", port: 0 }

const models = [AddSub, Digits, Sentiment, Tokenize, Bert, Verdict, Steady, ...Deep.models] as const

Layer.effectDiscard(
  Effect.map(Server.Server, ({ http, grpc, models }) =>
    report({ ports: { http: http?.port ?? 0, grpc: grpc?.port ?? 0 }, models }),
  ),
).pipe(
  Layer.provide(Server.layer(models, { http: local, grpc: local, metrics: false, tuneGarbageCollector: true })),
  Layer.provide([AddSubLive, DigitsLive, SentimentLive, TokenizeLive, BertLive, VerdictLive, SteadyLive, Deep.live]),
  Layer.launch,
  NodeRuntime.runMain({ teardown: Server.teardown }),
)
