/**
 * Sessions of a model with sequences: locally, over gRPC, over HTTP and with the client for browsers. One table of
 * cases, whose results must be equal.
 */
import { describe, expect, it } from "vitest"
import { Client } from "@nereid/client"
import { Client as BrowserClient } from "@nereid/client/browser"
import { Errors, Model, Tensor } from "@nereid/core"
import * as Testing from "@nereid/core/Testing"
import { EndedByModel, SequenceHistory } from "@nereid/core/internal/sequence/SequenceHistory"
import { Server } from "@nereid/server"
import { Layer } from "effect"

class Sums extends Model.Service<Sums>()("sums", {
  inputs: { VALUE: Tensor.scalar("INT32") },
  outputs: { TOTAL: Tensor.scalar("INT32") },
  maxBatchSize: 8,
  sequence: { state: { SUM: Tensor.scalar("INT32") }, maxBacklog: 0, maxSequences: 4 },
}) {}

class Words extends Model.Service<Words>()("words", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { WORD: Tensor.utf8() },
  sequence: { state: { REST: Tensor.utf8() } },
}) {}

const SumsLive = Model.sequence(Sums, ({ VALUE }, { state: { SUM }, sequence: { isEnd } }) => {
  if (VALUE < 0) throw new Errors.InvalidRequest({ message: "no negative values" })
  const sum = SUM + VALUE
  return { outputs: { TOTAL: isEnd ? -sum : sum }, state: { SUM: sum } }
})

const WordsLive = Model.sequenceStream(Words, function* ({ TEXT }, { state: { REST }, sequence: { isEnd } }) {
  const words = `${REST}${TEXT}`.split(" ")
  const rest = isEnd ? "" : (words.pop() ?? "")
  for (const WORD of words) yield { outputs: { WORD } }
  yield { state: { REST: rest } }
})

class Count extends Model.Service<Count>()("count", {
  inputs: { TO: Tensor.scalar("INT32") },
  outputs: { N: Tensor.scalar("INT32") },
  maxBatchSize: 8,
}) {}

const CountLive = Model.iterate(
  Count,
  { state: { SO_FAR: Tensor.scalar("INT32") } },
  ({ TO }, { state: { SO_FAR } }) => {
    const next = Tensor.make(
      "INT32",
      TO.shape,
      SO_FAR.data.map((count) => count + 1),
    )
    return {
      outputs: { N: next },
      state: { SO_FAR: next },
      isDone: Array.from(next.data, (count, row) => count >= (TO.data[row] ?? 0)),
    }
  },
)

const live = Layer.mergeAll(SumsLive, WordsLive, CountLive)
const anywhere = { host: "127.0.0.1", port: 0 } as const
// Some tests leave sequences open.
const options = { http: anywhere, grpc: anywhere, metrics: false, drainTimeout: "200 millis" } as const
const start = () => Server.start([Sums, Words, Count], live, options)
type Running = Awaited<ReturnType<typeof start>>

const connections = {
  gRPC: {
    count: ({ grpc }: Running) => Client.connect(Count, { url: `grpc://127.0.0.1:${grpc.port}` }),
    sums: ({ grpc }: Running) => Client.connect(Sums, { url: `grpc://127.0.0.1:${grpc.port}` }),
    words: ({ grpc }: Running) => Client.connect(Words, { url: `grpc://127.0.0.1:${grpc.port}` }),
  },
  HTTP: {
    count: ({ http }: Running) => Client.connect(Count, { url: `http://127.0.0.1:${http.port}` }),
    sums: ({ http }: Running) => Client.connect(Sums, { url: `http://127.0.0.1:${http.port}` }),
    words: ({ http }: Running) => Client.connect(Words, { url: `http://127.0.0.1:${http.port}` }),
  },
  "the client for browsers": {
    count: ({ http }: Running) => BrowserClient.connect(Count, { url: `http://127.0.0.1:${http.port}` }),
    sums: ({ http }: Running) => BrowserClient.connect(Sums, { url: `http://127.0.0.1:${http.port}` }),
    words: ({ http }: Running) => BrowserClient.connect(Words, { url: `http://127.0.0.1:${http.port}` }),
  },
  "Testing.start": {
    count: () => Testing.start(CountLive),
    sums: () => Testing.start(SumsLive),
    words: () => Testing.start(WordsLive),
  },
}

describe.each(Object.entries(connections))("%s", (name, connect) => {
  it("adds up the requests of a session, apart from those of others", async () => {
    await using server = await started()
    await using sums = await connect.sums(server.running)
    await using one = sums.session()
    await using other = sums.session({ id: 2n ** 64n - 1n })
    expect(one.id).not.toBe(other.id)
    expect(await one.infer({ VALUE: 1 })).toEqual({ TOTAL: 1 })
    expect(await other.infer({ VALUE: 10 })).toEqual({ TOTAL: 10 })
    const totals = await Promise.all([2, 3, 4].map((VALUE) => one.infer({ VALUE })))
    expect(totals.map(({ TOTAL }) => TOTAL)).toEqual([3, 6, 10])
    await expect(one.infer({ VALUE: -1 })).rejects.toThrow("no negative values")
    expect(await one.end({ VALUE: 1 })).toEqual({ TOTAL: -11 })
    await expect(one.infer({ VALUE: 1 })).rejects.toMatchObject({ _tag: "SequenceNotFound", reason: "ended" })
  })

  it("frees its place when it closes", async () => {
    await using server = await started()
    await using sums = await connect.sums(server.running)
    for (let round = 0; round < 6; round++) {
      await using session = sums.session({ id: "again" })
      expect(await session.infer({ VALUE: 1 })).toEqual({ TOTAL: 1 })
    }
    const open = Array.from({ length: 4 }, () => sums.session())
    for (const session of open) await session.infer({ VALUE: 1 })
    await expect(sums.session().infer({ VALUE: 1 })).rejects.toMatchObject({ _tag: "QueueFull" })
    await open[0]?.close()
    await using session = sums.session()
    expect(await session.infer({ VALUE: 5 })).toEqual({ TOTAL: 5 })
  })

  it("streams the responses, and keeps the state of a stream", async () => {
    await using server = await started()
    await using words = await connect.words(server.running)
    await using session = words.session()
    const all: Array<string> = []
    for await (const { WORD } of session.stream({ TEXT: "one tw" })) all.push(WORD)
    for await (const { WORD } of session.stream({ TEXT: "o three " })) all.push(WORD)
    expect(all).toEqual(["one", "two", "three"])
    await session.close()
    await using again = words.session({ id: session.id })
    for await (const { WORD } of again.stream({ TEXT: "fresh " })) all.push(WORD)
    expect(all.at(-1)).toBe("fresh")
  })

  it("streams the responses to the last sample, which ends the sequence", async () => {
    await using server = await started()
    await using words = await connect.words(server.running)
    await using session = words.session()
    const all: Array<string> = []
    for await (const { WORD } of session.stream({ TEXT: "one tw" })) all.push(WORD)
    for await (const { WORD } of session.endStream({ TEXT: "o thr" })) all.push(WORD)
    expect(all).toEqual(["one", "two", "thr"])
    const ended = { _tag: "SequenceNotFound", reason: "ended" }
    const after = async () => {
      for await (const { WORD } of session.stream({ TEXT: "ee " })) all.push(WORD)
    }
    await expect(after()).rejects.toMatchObject(ended)
    await using again = words.session({ id: session.id })
    for await (const { outputs } of again.withParameters.endStream({ TEXT: "alone" })) all.push(outputs.WORD)
    expect(all.at(-1)).toBe("alone")
    await expect(again.end({ TEXT: "" })).rejects.toMatchObject(ended)
  })

  it("has a last sample for decoupled models in a stream alone, and ends the sequence when it closes", async () => {
    if (name === "Testing.start") return
    await using server = await started()
    await using words = await connect.words(server.running)
    const session = words.session()
    for await (const { WORD } of session.stream({ TEXT: "one two " })) expect(WORD).toMatch(/one|two/)
    await expect(session.end({ TEXT: "" })).rejects.toMatchObject({ _tag: "Unsupported" })
    const live = async () => {
      const response = await fetch(`http://127.0.0.1:${server.running.http.port}/v2/models/words/sequences`)
      const list: { readonly live: number } = JSON.parse(await response.text())
      return list.live
    }
    expect(await live()).toBe(1)
    await session.close()
    expect(await live()).toBe(0)
  })

  it("streams the responses of requests that run step by step", async () => {
    await using server = await started()
    await using count = await connect.count(server.running)
    const upTo = async (TO: number) => {
      const all: Array<number> = []
      for await (const { N } of count.stream({ TO })) all.push(N)
      return all
    }
    const counts = await Promise.all([upTo(3), upTo(40), upTo(1)])
    expect(counts).toEqual([3, 40, 1].map((to) => Array.from({ length: to }, (_, index) => index + 1)))
    for await (const { N } of count.stream({ TO: 1000 })) if (N === 3) break
    expect(await upTo(2)).toEqual([1, 2])
  })

  it("says that the server has forgotten the sequence", async () => {
    if (name === "Testing.start") return
    await using server = await started()
    await using sums = await connect.sums(server.running)
    await using session = sums.session({ id: 5n })
    await session.infer({ VALUE: 1 })
    await server.restart()
    await expect(session.infer({ VALUE: 1 })).rejects.toMatchObject({
      _tag: "SequenceNotFound",
      message: "the session of model 'sums' is over: the server does not know it",
      reason: "restarted",
    })
  })
})

/** A server that can restart at its port. */
const started = async () => {
  let running = await start()
  const { http, grpc } = running
  return {
    get running() {
      return running
    },
    restart: async () => {
      await running.stop()
      // As in another process, which knows nothing of earlier sequences.
      const fresh = Layer.provide(live, Layer.succeed(SequenceHistory, new EndedByModel()))
      running = await Server.start([Sums, Words, Count], fresh, {
        ...options,
        http: { ...anywhere, port: http.port },
        grpc: { ...anywhere, port: grpc.port },
      })
    },
    [Symbol.asyncDispose]: () => running.stop(),
  }
}

it("a session and requests with Triton's parameters are the same sequence", async () => {
  await using server = await started()
  const { http } = server.running
  await using sums = await Client.connect(Sums, { url: `http://127.0.0.1:${http.port}` })
  await using session = sums.session({ id: 2n ** 62n + 1n })
  await session.infer({ VALUE: 1 })
  const post = async (parameters: string) => {
    const inputs = `[{"name":"VALUE","datatype":"INT32","shape":[1,1],"data":[4]}]`
    const response = await fetch(`http://127.0.0.1:${http.port}/v2/models/sums/infer`, {
      method: "POST",
      body: `{"parameters":${parameters},"inputs":${inputs}}`,
    })
    return response.json()
  }
  expect(await post(`{"sequence_id":4611686018427387905}`)).toMatchObject({ outputs: [{ data: [5] }] })
  expect(await session.infer({ VALUE: 1 })).toEqual({ TOTAL: 6 })
  expect(await post(`{"sequence_id":4611686018427387905,"sequence_end":true}`)).toMatchObject({
    outputs: [{ data: [-10] }],
  })
  await expect(session.infer({ VALUE: 1 })).rejects.toMatchObject({ _tag: "SequenceNotFound", reason: "ended" })
})
