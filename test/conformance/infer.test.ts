/**
 * The cases of inference, each in every encoding that it has, over HTTP and over both ways that unary gRPC has; and on
 * one port.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { compareGrpc, compareHttp, compareStream } from "./ResponseComparison.ts"
import type { InferCase } from "./Case.ts"
import { datatypes } from "./cases/datatypes.ts"
import { models } from "./cases/models.ts"
import { outputs } from "./cases/outputs.ts"
import { ensembles } from "./cases/ensembles.ts"
import { storedModels } from "./cases/storedModels.ts"
import { storedScheduling } from "./cases/storedScheduling.ts"
import { validation } from "./cases/validation.ts"
import { Connections } from "./Connections.ts"
import { encode as encodeGrpc } from "./GrpcEncoding.ts"
import { encode as encodeHttp } from "./HttpEncoding.ts"
import { type Encoding, possible } from "./InferRequest.ts"

const differences = async (
  connections: Connections["Service"],
  { request, expected, server: serverName }: InferCase,
  encoding: Encoding,
) => {
  const server = serverName ?? "normal"
  const servers = [server, `${server}OnOne`] as const
  const found: Array<string> = []
  switch (encoding) {
    case "gRPC stream": {
      const call = { method: "ModelStreamInfer", chunks: [encodeGrpc(request, encoding)] }
      for (const through of servers) {
        const response = await (await connections.grpc(through)).call(call)
        for (const line of compareStream(request, expected, response)) found.push(`${encoding} (${through}): ${line}`)
      }
      return found
    }
    case "gRPC raw":
    case "gRPC contents": {
      const chunks = [encodeGrpc(request, encoding)]
      for (const through of serverName === undefined ? ([...servers, "connect"] as const) : servers) {
        const response = await (await connections.grpc(through)).call({ chunks })
        for (const line of compareGrpc(request, expected, response)) found.push(`${encoding} (${through}): ${line}`)
      }
      return found
    }
    default: {
      const [own, one] = servers
      const connectionsByMethod = [connections.http(own), connections.http(one), connections.http2(one)]
      for (const connection of await Promise.all(connectionsByMethod)) {
        const response = await connection.request(encodeHttp(request, encoding))
        const connectionName = connection.constructor.name
        for (const line of compareHttp(request, expected, response))
          found.push(`${encoding} (${connectionName}): ${line}`)
      }
      return found
    }
  }
}

layer(Connections.layerWithRepository, { excludeTestServices: true, timeout: "30 seconds" })("inference", (it) => {
  for (const one of [
    ...datatypes,
    ...validation,
    ...models,
    ...outputs,
    ...storedModels,
    ...storedScheduling,
    ...ensembles,
  ]) {
    it.effect(`${one.name} ${(one.proves ?? []).join(" ")}`.trim(), () =>
      Effect.gen(function* () {
        const connections = yield* Connections
        const all = yield* Effect.promise(() =>
          Promise.all((one.as ?? possible(one.request)).map((encoding) => differences(connections, one, encoding))),
        )
        assert.deepStrictEqual(all.flat(), [])
      }),
    )
  }
})
