/** Clients over replicas, with real servers: in this process, and in processes of their own that are killed. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it, onTestFinished } from "@effect/vitest"
import { Client } from "@nereid/client"
import { Client as BrowserClient } from "@nereid/client/browser"
import { Model } from "@nereid/core"
import { Server } from "@nereid/server"
import { Effect, Layer, Tracer } from "effect"
import { authority } from "../fixtures/certificate.ts"
import { parentOf, recorder } from "../fixtures/spans.ts"
import { freePort } from "../Program.ts"
import { Sums, Work } from "./models.ts"
import { Replicas } from "./Replicas.ts"

/** A server in this process, named by a number. */
const start = (PROCESS: number, ports: { readonly http?: number; readonly grpc?: number } = {}, host = "127.0.0.1") => {
  const models = Layer.merge(
    Model.each(Work, ({ X }) => Effect.succeed({ Y: 2 * X, PROCESS })),
    Model.sequence(Sums, ({ VALUE }, { state: { SUM } }) => {
      const TOTAL = SUM + VALUE
      return { outputs: { TOTAL, PROCESS }, state: { SUM: TOTAL } }
    }),
  )
  const { http = 0, grpc = 0 } = ports
  return Server.start([Work, Sums], models, { http: { host, port: http }, grpc: { host, port: grpc }, metrics: false })
}

type Protocol = "grpc" | "http"

describe.each<Protocol>(["grpc", "http"])("over %s", (protocol) => {
  it("calls reach all replicas, and only the others once one has stopped", async () => {
    await using one = await start(1)
    await using two = await start(2)
    const three = await start(3)
    const url = [one, two, three].map((server) => `${protocol}://127.0.0.1:${server[protocol].port}`)
    await using work = await Client.connect(Work, { url })
    const called = async () => {
      const outputs = await Promise.all(Array.from({ length: 300 }, (_, X) => work.infer({ X })))
      return new Set(outputs.map(({ PROCESS }) => PROCESS))
    }
    expect(await called()).toEqual(new Set([1, 2, 3]))
    await three.stop()
    expect(await called()).toEqual(new Set([1, 2]))
  })

  it("a call that no replica has received fails with Unavailable", async () => {
    const url = [`${protocol}://127.0.0.1:${await freePort()}`, `${protocol}://127.0.0.1:${await freePort()}`]
    await using work = await Client.connect(Work, { url })
    await expect(work.infer({ X: 1 })).rejects.toMatchObject({
      _tag: "Unavailable",
      message: expect.stringMatching(/^cannot reach 127\.0\.0\.1:\d+: connect ECONNREFUSED/),
    })
  })

  it("a replica that never responds is found by its health check", async () => {
    await using one = await start(1)
    const silent = createServer(() => {}).listen(0, "127.0.0.1")
    await new Promise((resolve) => silent.once("listening", resolve))
    const address = silent.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    const url = [`${protocol}://127.0.0.1:${port}`, `${protocol}://127.0.0.1:${one[protocol].port}`]
    const health = { interval: "100 millis", timeout: "100 millis" } as const
    await using work = await Client.connect(Work, { url, replicas: { idempotent: true, health } })
    const outputs = await Promise.all(Array.from({ length: 50 }, (_, X) => work.infer({ X })))
    expect(new Set(outputs.map(({ PROCESS }) => PROCESS))).toEqual(new Set([1]))
    silent.close()
  })

  it("streams reach a replica that is there", async () => {
    await using one = await start(1)
    const url = [`${protocol}://127.0.0.1:${await freePort()}`, `${protocol}://127.0.0.1:${one[protocol].port}`]
    for (let round = 0; round < 4; round++) {
      await using work = await Client.connect(Work, { url })
      const received = []
      for await (const { Y } of work.stream({ X: 4 })) received.push(Y)
      expect(received).toEqual([8])
    }
  })

  it("the addresses of a name are the replicas", async () => {
    await using one = await start(1)
    const { port } = one[protocol]
    await using work = await Client.connect(Work, { url: `dns+${protocol}://localhost:${port}` })
    const outputs = await Promise.all(Array.from({ length: 20 }, (_, X) => work.infer({ X })))
    expect(outputs.map(({ Y }) => Y)).toEqual(Array.from({ length: 20 }, (_, X) => 2 * X))
  })

  it("a client with verify asks the first replica that can be reached", async () => {
    await using one = await start(1)
    const url = [`${protocol}://127.0.0.1:${await freePort()}`, `${protocol}://127.0.0.1:${one[protocol].port}`]
    await using work = await Client.connect(Work, { url, verify: true })
    expect(await work.infer({ X: 1 })).toEqual({ Y: 2, PROCESS: 1 })
  })

  it("a sequence stays on its replica, and its loss is a SequenceNotFound", { timeout: 60_000 }, async () => {
    await using replicas = await Replicas.start(2)
    await using sums = await Client.connect(Sums, { url: replicas.urls(protocol) })
    const sessions = Array.from({ length: 10 }, () => sums.session())
    const first = await Promise.all(sessions.map((session) => session.infer({ VALUE: 1 })))
    const second = await Promise.all(sessions.map((session) => session.infer({ VALUE: 2 })))
    expect(second.map(({ TOTAL }) => TOTAL)).toEqual(Array(10).fill(3))
    expect(second.map(({ PROCESS }) => PROCESS)).toEqual(first.map(({ PROCESS }) => PROCESS))
    expect(new Set(first.map(({ PROCESS }) => PROCESS)).size).toBe(2)
    const [, killed] = replicas.pids
    replicas.signal(1, "SIGKILL")
    await replicas.at(1).program.ended
    const third = await Promise.allSettled(sessions.map((session) => session.infer({ VALUE: 3 })))
    for (const [index, outcome] of third.entries()) {
      if (first[index]?.PROCESS !== killed) {
        expect(outcome).toMatchObject({ status: "fulfilled", value: { TOTAL: 6 } })
        continue
      }
      expect(outcome).toMatchObject({ status: "rejected", reason: { _tag: "SequenceNotFound", reason: "failed" } })
      const again = sums.session()
      expect(await again.infer({ VALUE: 5 })).toMatchObject({ TOTAL: 5 })
    }
    await Promise.all(sessions.map((session) => session.close()))
  })
})

it.each(["grpcs", "https"] as const)("certificates are those of the name, with %s", async (scheme) => {
  const issuer = authority()
  const { cert, key } = issuer.issue("localhost")
  const folder = mkdtempSync(join(tmpdir(), "replicas-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const tls = { cert: join(folder, "cert.pem"), key: join(folder, "key.pem") }
  writeFileSync(tls.cert, cert)
  writeFileSync(tls.key, key)
  const models = Model.each(Work, ({ X }) => Effect.succeed({ Y: 2 * X, PROCESS: 1 }))
  const listener = { host: "127.0.0.1", port: 0 }
  const options = { http: listener, grpc: listener, tls: { http: tls, grpc: tls }, metrics: false } as const
  await using server = await Server.start([Work], models, options)
  const { port } = scheme === "grpcs" ? server.grpc : server.http
  await using work = await Client.connect(Work, {
    url: `dns+${scheme}://localhost:${port}`,
    tls: { ca: issuer.cert },
  })
  expect(await work.infer({ X: 2 })).toEqual({ Y: 4, PROCESS: 1 })
})

it("one connection may be several", async () => {
  await using one = await start(1)
  await using work = await Client.connect(Work, {
    url: [`grpc://127.0.0.1:${one.grpc.port}`],
    replicas: { connections: 3 },
  })
  const outputs = await Promise.all(Array.from({ length: 100 }, (_, X) => work.infer({ X })))
  expect(outputs.map(({ Y }) => Y)).toEqual(Array.from({ length: 100 }, (_, X) => 2 * X))
})

it("URLs without a scheme and of both protocols may be mixed", async () => {
  await using one = await start(1)
  await using two = await start(2)
  const url = [`127.0.0.1:${one.grpc.port}`, `127.0.0.1:${two.http.port}`, `http://127.0.0.1:${one.http.port}`]
  await using work = await Client.connect(Work, { url })
  const outputs = await Promise.all(Array.from({ length: 100 }, (_, X) => work.infer({ X })))
  expect(new Set(outputs.map(({ PROCESS }) => PROCESS))).toEqual(new Set([1, 2]))
})

it("the client for browsers takes lists, and no names", async () => {
  await using one = await start(1)
  await using two = await start(2)
  const url = [one, two].map(({ http }) => `http://127.0.0.1:${http.port}`)
  await using work = await BrowserClient.connect(Work, { url, replicas: { idempotent: true, health: true } })
  const outputs = await Promise.all(Array.from({ length: 100 }, (_, X) => work.infer({ X })))
  expect(new Set(outputs.map(({ PROCESS }) => PROCESS))).toEqual(new Set([1, 2]))
  await expect(BrowserClient.connect(Work, { url: "dns+http://models" })).rejects.toMatchObject({
    _tag: "InvalidUrl",
    message: "A browser needs URLs without dns, because it cannot look up addresses, but dns+http://models was given",
  })
  await expect(BrowserClient.connect(Work, { url: ["http://a", "grpc://b"] })).rejects.toMatchObject({
    message: "A browser needs a URL that begins with http:// or https://, but http://a, grpc://b was given",
  })
})

it("each attempt is a span below the span of its call", async () => {
  await using one = await start(1)
  const url = [`grpc://127.0.0.1:${await freePort()}`, `grpc://127.0.0.1:${one.grpc.port}`]
  const { tracer, named, only } = recorder()
  const program = Effect.gen(function* () {
    const work = yield* Work
    for (let X = 0; X < 20; X++) yield* work.infer({ X })
  }).pipe(Effect.withSpan("caller"), Effect.provide(Client.layer(Work, { url })))
  await Effect.runPromise(Effect.provideService(program, Tracer.Tracer, tracer))
  const attempts = named("attempt work")
  const retries = attempts.filter(({ attributes }) => attributes.get("nereid.attempt_reason") === "retry")
  expect(retries.length).toBeGreaterThan(0)
  expect(attempts.length).toBe(20 + retries.length)
  expect(new Set(attempts.map(parentOf))).toEqual(new Set([only("caller").spanId]))
  expect(attempts.map(({ attributes }) => attributes.get("nereid.replica"))).toContain(`127.0.0.1:${one.grpc.port}`)
})
