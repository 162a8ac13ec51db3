/**
 * The cases that only gRPC has, through both ways that unary inference has there, and where HTTP is on the same port.
 */
import { fromBinary, toJson } from "@bufbuild/protobuf"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ModelInferResponseSchema } from "@nereid/protocol/grpc_service"
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
import { type GrpcReply, messages } from "./GrpcConnection.ts"
import { missing } from "./PartialMatch.ts"

const fits = (actual: unknown, expected: string | RegExp | undefined): boolean =>
  expected instanceof RegExp ? typeof actual === "string" && expected.test(actual) : actual === expected

const compare = ({ expected, output = ModelInferResponseSchema }: GrpcCase, response: GrpcReply) => {
  const { code, message, tag, httpStatus, body, headers } = response
  const found: Array<string> = []
  if (httpStatus !== (expected.httpStatus ?? 200)) found.push(`HTTP status ${httpStatus}`)
  if (code !== expected.code) found.push(`code ${code}, expected ${expected.code}: ${message}`)
  if (expected.message !== undefined && !fits(message, expected.message)) {
    found.push(`message ${message}, expected ${String(expected.message)}`)
  }
  if (expected.tag !== undefined && tag !== expected.tag) found.push(`tag ${tag}, expected ${expected.tag}`)
  for (const [name, value] of Object.entries(expected.headers ?? {})) {
    if (!fits(headers[name], value)) found.push(`${name}: ${String(headers[name])}, expected ${String(value)}`)
  }
  if (expected.shows !== undefined) {
    const [reply = new Uint8Array()] = messages(body)
    const shown = toJson(output, fromBinary(output, reply), { useProtoFieldName: true, alwaysEmitImplicit: true })
    found.push(...missing(expected.shows, shown))
  }
  if (expected.replies === undefined) return found
  const replies = messages(body).map((reply) => JSON.stringify(toJson(output, fromBinary(output, reply))))
  if (replies.length !== expected.replies.length) found.push(`${replies.length} replies`)
  for (const [index, reply] of replies.entries()) {
    if (!fits(reply, expected.replies[index])) found.push(`${reply}, expected ${String(expected.replies[index])}`)
  }
  return found
}

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
