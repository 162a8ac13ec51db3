/** Serves the models of the conformance tests, with gRPC by both of its implementations, until it is ended. */
import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
import { Console, Effect } from "effect"
import { ServerUnderTest } from "../conformance/ServerUnderTest.ts"

const main = Effect.gen(function* () {
  const { normal, connect } = yield* ServerUnderTest
  yield* Console.log(`ports ${normal.http} ${normal.grpc} ${normal.metrics} ${connect.grpc}`)
  return yield* Effect.never
})

NodeRuntime.runMain(Effect.provide(main, ServerUnderTest.layer))
