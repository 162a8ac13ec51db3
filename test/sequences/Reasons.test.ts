/**
 * Why a session is over: each reason locally, over gRPC, over HTTP and with the client for browsers, in each call. One
 * table, whose results must be equal.
 *
 * No call of a session has the other reasons: a session has sent its START (`neverStarted`), and goes on after the
 * START of another caller (`replaced`).
 */
import { Client } from "@nereid/client"
import { Client as BrowserClient } from "@nereid/client/browser"
import { Model, Tensor } from "@nereid/core"
import * as Testing from "@nereid/core/Testing"
import { EndedByModel, SequenceHistory } from "@nereid/core/internal/sequence/SequenceHistory"
import { Server } from "@nereid/server"
import { Layer } from "effect"
import { describe, expect, it, vi } from "vitest"

class Texts extends Model.Service<Texts>()("texts", {
  inputs: { MORE: Tensor.utf8() },
  outputs: { LENGTH: Tensor.scalar("INT32") },
  sequence: { state: { ALL: Tensor.utf8() }, maxStateBytes: 20 },
}) {}

/** Holds the requests with the text "hold". */
const gate = { opened: Promise.resolve(), open: () => {}, onHeld: () => {} }

const TextsLive = Model.sequence(Texts, async ({ MORE }, { state: { ALL } }) => {
  if (MORE === "hold") {
    gate.onHeld()
    await gate.opened
  }
  const all = ALL + MORE
  return { outputs: { LENGTH: all.length }, state: { ALL: all } }
})

const anywhere = { host: "127.0.0.1", port: 0 } as const

const serve = (history: EndedByModel, http: object = {}, grpc: object = {}) =>
  Server.start([Texts], remembering(history), {
    http: { ...anywhere, ...http },
    grpc: { ...anywhere, ...grpc },
    metrics: anywhere,
    drainTimeout: "10 millis",
  })

/** The memory of ended sequences is that of a process. */
const remembering = (history: EndedByModel) => Layer.provide(TextsLive, Layer.succeed(SequenceHistory, history))

type Running = Awaited<ReturnType<typeof serve>>

const remote = async (connect: (server: Running) => ReturnType<typeof overGrpc>) => {
  const history = new EndedByModel()
  let server = await serve(history)
  const client = await connect(server)
  const { http, grpc } = server
  const post = (path: string) => fetch(`http://127.0.0.1:${http.port}/v2/models/texts/${path}`, { method: "POST" })
  return {
    session: client.session,
    live: async () => {
      const response = await fetch(`http://127.0.0.1:${http.port}/v2/models/texts/sequences`)
      const list: { readonly live: number } = JSON.parse(await response.text())
      return list.live
    },
    waiting: async () => {
      const text = await (await fetch(`http://127.0.0.1:${server.metrics?.port}/metrics`)).text()
      return /^nv_inference_pending_request_count\{model="texts".*\} (\d+)$/m.exec(text)?.[1]
    },
    advance: () => Promise.resolve(),
    reload: () => server.replace([Texts], remembering(history)),
    move: async () => expect((await post("sequences/export")).status).toBe(200),
    restart: async () => {
      await server.stop()
      server = await serve(new EndedByModel(), { port: http.port }, { port: grpc.port })
    },
    lose: () => server.stop(),
    [Symbol.asyncDispose]: async () => {
      await client.close()
      await server.stop()
    },
  }
}

const local = async () => {
  const { session, advance, [Symbol.asyncDispose]: dispose } = await Testing.start(TextsLive)
  return { session, advance: () => advance(30), live: undefined, waiting: undefined, [Symbol.asyncDispose]: dispose }
}

const overGrpc = ({ grpc }: Running) => Client.connect(Texts, { url: [`grpc://127.0.0.1:${grpc.port}`] })

type Place = Awaited<ReturnType<typeof remote>> | Awaited<ReturnType<typeof local>>

const places: { readonly [name: string]: () => Promise<Place> } = {
  locally: local,
  gRPC: () => remote(overGrpc),
  HTTP: () => remote(({ http }) => Client.connect(Texts, { url: [`http://127.0.0.1:${http.port}`] })),
  "the client for browsers": () =>
    remote(({ http }) => BrowserClient.connect(Texts, { url: [`http://127.0.0.1:${http.port}`] })),
}

/** Ends the sequence of a session that has had one request. Returns false where that cannot happen. */
type Lose = (place: Place, session: ReturnType<Place["session"]>) => Promise<boolean | void>

const losses: ReadonlyArray<readonly [reason: string, idleMillis: number | undefined, lose: Lose]> = [
  ["ended", undefined, async ({ session }, { id }) => void (await session({ id }).end({ MORE: "b" }))],
  [
    "expired",
    30,
    async ({ advance, live }) => {
      await advance()
      if (live !== undefined) await vi.waitUntil(async () => (await live()) === 0, 10_000)
    },
  ],
  [
    "cancelled",
    undefined,
    async ({ session, waiting }, { id }) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      const held = Promise.withResolvers<void>()
      Object.assign(gate, { opened: promise, open: resolve, onHeld: held.resolve })
      const first = session({ id, maxIdle: "30 seconds" }).infer({ MORE: "hold" })
      await held.promise
      const leaving = new AbortController()
      const second = session({ id, maxIdle: "30 seconds" }).infer({ MORE: "c" }, { signal: leaving.signal })
      if (waiting !== undefined) await vi.waitUntil(async () => (await waiting()) === "1", 10_000)
      leaving.abort()
      await expect(second).rejects.toThrow()
      if (waiting !== undefined) await vi.waitUntil(async () => (await waiting()) === "0", 10_000)
      gate.open()
      await first
    },
  ],
  [
    "tooLarge",
    undefined,
    async ({ session }, { id }) => {
      const large = session({ id }).infer({ MORE: "x".repeat(30) })
      await expect(large).rejects.toMatchObject({ _tag: "ExecutionFailed" })
    },
  ],
  ["reloaded", undefined, async (place) => ("reload" in place ? place.reload() : false)],
  ["moved", undefined, async (place) => ("move" in place ? place.move() : false)],
  ["restarted", undefined, async (place) => ("restart" in place ? place.restart() : false)],
  ["failed", undefined, async (place) => ("lose" in place ? place.lose() : false)],
]

const calls = {
  infer: (session) => session.infer({ MORE: "d" }),
  stream: async (session) => {
    for await (const response of session.stream({ MORE: "d" })) expect.unreachable(String(response.LENGTH))
  },
  end: (session) => session.end({ MORE: "d" }),
} satisfies { readonly [name: string]: (session: ReturnType<Place["session"]>) => Promise<unknown> }

describe.each(Object.entries(places))("%s", (_, start) => {
  describe.each(losses)("%s", (reason, idleMillis, lose) => {
    it.each(Object.entries(calls))("is the reason that %s has, and each call after it", async (_, call) => {
      await using place = await start()
      const session = place.session(idleMillis === undefined ? {} : { maxIdle: idleMillis })
      expect(await session.infer({ MORE: "a" })).toEqual({ LENGTH: 1 })
      if ((await lose(place, session)) === false) return
      const expected = { _tag: "SequenceNotFound", reason, ...(idleMillis !== undefined && { idleMillis }) }
      await expect(call(session)).rejects.toMatchObject(expected)
      await expect(session.infer({ MORE: "e" })).rejects.toMatchObject(expected)
      await session.close()
    })
  })
})
