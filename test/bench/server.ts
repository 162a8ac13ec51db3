/**
 * The server that is measured, run as a child: models of the examples behind the front ends, as `nereid serve` would
 * serve them, with its garbage collector tuned.
 */
import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
import { Server } from "@nereid/server"
import { Effect, Layer } from "effect"
import { AddSub, AddSubLive, Digits, DigitsLive } from "../../examples/models.ts"
import { Sentiment, SentimentLive } from "../../examples/sentiment/server.ts"
import { live, models } from "./models.ts"
import { report } from "./Reporter.ts"

const local = { host: "127.0.0.1", port: 0 }

const options = { http: local, grpc: local, metrics: false, tuneGarbageCollector: true } as const

const reported = Layer.effectDiscard(
  Effect.map(Server.Server, ({ http, grpc, models }) =>
    report({ ports: { http: http?.port ?? 0, grpc: grpc?.port ?? 0 }, models }),
  ),
)

reported.pipe(
  Layer.provide(Server.layer([AddSub, Digits, Sentiment, ...models], options)),
  Layer.provide([AddSubLive, DigitsLive, SentimentLive, live]),
  Layer.launch,
  NodeRuntime.runMain({ teardown: Server.teardown }),
)
