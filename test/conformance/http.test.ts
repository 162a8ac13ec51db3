/** The cases that only HTTP has: each on a connection that others have used, and that must work for others after it. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { tagHeader } from "@nereid/core/Errors"
import type { HttpCase, HttpExpected } from "./Case.ts"
import { binary } from "./cases/binary.ts"
import { extensionsHttp } from "./cases/extensions.ts"
import { generate } from "./cases/generate.ts"
import { guardedHttp } from "./cases/guarded.ts"
import { json } from "./cases/json.ts"
import { jsonElements } from "./cases/jsonElements.ts"
import { routes } from "./cases/routes.ts"
import { decoupledHttp } from "./cases/streams.ts"
import { traceHttp } from "./cases/trace.ts"
import { transport } from "./cases/transport.ts"
import { Connections } from "./Connections.ts"
import { type HttpAnswer, HttpConnection } from "./HttpConnection.ts"
import { within } from "./within.ts"

const fits = (actual: string | undefined, expected: string | RegExp | undefined): boolean =>
  expected instanceof RegExp ? actual !== undefined && expected.test(actual) : actual === expected

const compare = ({ status, headers, body }: HttpAnswer, expected: HttpExpected): ReadonlyArray<string> => {
  const found: Array<string> = []
  const text = body.toString()
  if (status !== expected.status) found.push(`status ${status}, expected ${expected.status}: ${text.slice(0, 300)}`)
  const wanted = { ...expected.headers, ...(expected.tag === undefined ? {} : { [tagHeader]: expected.tag }) }
  for (const [name, value] of Object.entries(wanted)) {
    const actual = headers.get(name)
    if (!fits(actual, value)) found.push(`${name}: ${actual}, expected ${String(value)}`)
  }
  if (expected.body !== undefined && !fits(text, expected.body))
    found.push(`body ${text}, expected ${String(expected.body)}`)
  if (expected.error !== undefined) {
    const answer: unknown = JSON.parse(text)
    const [[key, error] = [], ...others] = Object.entries(answer ?? {})
    if (key !== "error" || others.length > 0 || typeof error !== "string" || !fits(error, expected.error)) {
      found.push(`body ${text}, expected the error ${String(expected.error)}`)
    }
    if (headers.get("content-type") !== "application/json") found.push(`an error as ${headers.get("content-type")}`)
  }
  return found
}

const differences = async (connections: Connections["Service"], one: HttpCase): Promise<ReadonlyArray<string>> => {
  const { steps, server = "normal", port = "http", closes = false } = one
  const ownPort = connections.servers[server][port]
  const connection = closes || port !== "http" ? await HttpConnection.open(ownPort) : await connections.http(server)
  const found: Array<string> = []
  for (const [request, expected] of steps) {
    const raw = typeof request === "string" || request instanceof Uint8Array
    const answer = await (raw ? connection.send(request) : connection.request(request))
    found.push(...compare(answer, expected))
  }
  if (closes) {
    await within(10_000, "the end of the connection", connection.closed)
  } else if (port === "http") {
    const { status } = await connection.request({ path: "/v2/health/live" })
    if (status !== 200) found.push(`afterwards the connection answers ${status}`)
  } else connection.close()
  return found
}

layer(Connections.layer, { excludeTestServices: true })("HTTP", (it) => {
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
  ]) {
    it.effect(`${one.name} ${(one.proves ?? []).join(" ")}`.trim(), () =>
      Effect.gen(function* () {
        const connections = yield* Connections
        assert.deepStrictEqual(yield* Effect.promise(() => differences(connections, one)), [])
      }),
    )
  }
})
