/**
 * The cases that only HTTP has. Each uses a shared connection, which must remain usable. They run on the HTTP port and,
 * on a port shared with gRPC, over HTTP/1.1 and over HTTP/2.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { HttpCase } from "./Case.ts"
import { binary } from "./cases/binary.ts"
import { extensionsHttp } from "./cases/extensions.ts"
import { generate } from "./cases/generate.ts"
import { guardedHttp } from "./cases/guarded.ts"
import { json } from "./cases/json.ts"
import { jsonElements } from "./cases/jsonElements.ts"
import { routes } from "./cases/routes.ts"
import { ensemblesHttp } from "./cases/ensembles.ts"
import { storedConfigsHttp } from "./cases/storedConfigs.ts"
import { storedEnsemblesHttp } from "./cases/storedEnsembles.ts"
import { storedHttp } from "./cases/storedRepository.ts"
import { storedSchedulingHttp } from "./cases/storedScheduling.ts"
import { decoupledHttp } from "./cases/streams.ts"
import { traceHttp } from "./cases/trace.ts"
import { transport } from "./cases/transport.ts"
import { Connections } from "./Connections.ts"
import { compare } from "./HttpComparison.ts"
import { HttpConnection } from "./HttpConnection.ts"
import { isSayable } from "./HttpOverHttp2.ts"
import { within } from "./within.ts"

type Connected = Connections["Service"]

const differences = async (connections: Connections["Service"], one: HttpCase): Promise<ReadonlyArray<string>> => {
  const { server = "normal", port = "http" } = one
  const found = await overHttp1(connections, one, server)
  if (port === "http") {
    const onePort = `${server}OnOne` as const
    for (const line of await overHttp1(connections, one, onePort)) found.push(`on one port: ${line}`)
    for (const line of await overHttp2(connections, one, onePort)) found.push(`over HTTP/2: ${line}`)
  }
  return found
}

const overHttp1 = async (connections: Connected, one: HttpCase, server: keyof Connected["servers"]) => {
  const { steps, port = "http", closes = false } = one
  const ownPort = connections.servers[server][port]
  const connection = closes || port !== "http" ? await HttpConnection.open(ownPort) : await connections.http(server)
  const found: Array<string> = []
  for (const [request, expected] of steps) {
    const raw = typeof request === "string" || request instanceof Uint8Array
    const response = await (raw ? connection.send(request) : connection.request(request))
    found.push(...compare(response, expected))
  }
  if (closes) {
    await within(10_000, "the end of the connection", connection.closed)
  } else if (port === "http") {
    const { status } = await connection.request({ path: "/v2/health/live" })
    if (status !== 200) found.push(`afterwards the connection answers ${status}`)
  } else connection.close()
  return found
}

const overHttp2 = async (connections: Connected, { steps }: HttpCase, server: keyof Connected["servers"]) => {
  const found: Array<string> = []
  const connection = await connections.http2(server)
  for (const [request, expected] of steps) {
    if (isSayable(request)) found.push(...compare(await connection.request(request), expected))
  }
  if (!connection.isOpen) found.push("the connection was closed")
  return found
}

layer(Connections.layerWithRepository, { excludeTestServices: true, timeout: "30 seconds" })("HTTP", (it) => {
  for (const one of [
    ...routes,
    ...json,
    ...jsonElements,
    ...binary,
    ...transport,
    ...extensionsHttp,
    ...decoupledHttp,
    ...guardedHttp,
    ...traceHttp,
    ...generate,
    ...storedHttp,
    ...storedConfigsHttp,
    ...storedEnsemblesHttp,
    ...storedSchedulingHttp,
    ...ensemblesHttp,
  ]) {
    it.effect(`${one.name} ${(one.proves ?? []).join(" ")}`.trim(), () =>
      Effect.gen(function* () {
        const connections = yield* Connections
        assert.deepStrictEqual(yield* Effect.promise(() => differences(connections, one)), [])
      }),
    )
  }
})
