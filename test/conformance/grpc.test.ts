/**
 * The cases that only gRPC has, through both ways that unary inference has there, and where HTTP is on the same port.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { GrpcCase } from "./Case.ts"
import { extensionsGrpc } from "./cases/extensions.ts"
import { grpc } from "./cases/grpc.ts"
import { grpcFrames } from "./cases/grpcFrames.ts"
import { guardedGrpc } from "./cases/guarded.ts"
import { ensemblesGrpc } from "./cases/ensembles.ts"
import { storedConfigsGrpc } from "./cases/storedConfigs.ts"
import { storedEnsemblesGrpc } from "./cases/storedEnsembles.ts"
import { storedStreams } from "./cases/storedAnswers.ts"
import { storedGrpc } from "./cases/storedRepository.ts"
import { storedSchedulingGrpc } from "./cases/storedScheduling.ts"
import { streams } from "./cases/streams.ts"
import { traceGrpc } from "./cases/trace.ts"
import { Connections } from "./Connections.ts"
import { compare } from "./GrpcComparison.ts"

const connectToo = ["connect"] as const

const differences = async (connections: Connections["Service"], one: GrpcCase): Promise<ReadonlyArray<string>> => {
  const found: Array<string> = []
  const { server = "normal" } = one
  for (const name of [...(one.server === undefined ? connectToo : []), server, `${server}OnOne`] as const) {
    const response = await (await connections.grpc(name)).call(one.call)
    found.push(...compare(one, response).map((line) => `${name}: ${line}`))
  }
  return found
}

layer(Connections.layerWithRepository, { excludeTestServices: true, timeout: "30 seconds" })("gRPC", (it) => {
  for (const one of [
    ...grpc,
    ...grpcFrames,
    ...streams,
    ...extensionsGrpc,
    ...guardedGrpc,
    ...traceGrpc,
    ...storedGrpc,
    ...storedStreams,
    ...storedConfigsGrpc,
    ...storedEnsemblesGrpc,
    ...storedSchedulingGrpc,
    ...ensemblesGrpc,
  ]) {
    it.effect(`${one.name} ${(one.proves ?? []).join(" ")}`.trim(), () =>
      Effect.gen(function* () {
        const connections = yield* Connections
        assert.deepStrictEqual(yield* Effect.promise(() => differences(connections, one)), [])
      }),
    )
  }
})
