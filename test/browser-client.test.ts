/** The client for browsers, which has nothing but `fetch`, against a server: over sockets, as a page would be. */
import { Client } from "@nereid/client/browser"
import { Errors, Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Effect, Layer, Schema, Stream } from "effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { once } from "node:events"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

class Odd extends Schema.TaggedError<Odd>()("Odd", { x: Schema.Int }) {}

class Twice extends Model.Service<Twice>()("twice", {
  inputs: { x: Tensor.scalar("INT32"), half: Tensor.optional(Tensor.FP16("n")) },
  outputs: { y: Tensor.scalar("INT32") },
  responseParameters: { language: Schema.String },
  errors: [[Odd, { http: 422 }]],
  maxBatchSize: 4,
}) {}

class Count extends Model.Service<Count>()("count", {
  inputs: { TO: Tensor.scalar("INT32"), THEN: Tensor.labels(["end", "failure", "nothing"]) },
  outputs: { N: Tensor.scalar("INT32"), PAD: Tensor.UINT8("size") },
}) {}

class Waiting extends Model.Service<Waiting>()("waiting", { inputs: {}, outputs: {} }) {}

let left = () => {}
const whenLeft = () => new Promise<void>((resolve) => (left = resolve))
let made = 0

const live = Layer.mergeAll(
  Model.each(Twice, ({ x }, { setParameter }) =>
    x % 2 === 0 ? Effect.as(setParameter("language", "de"), { y: 2 * x }) : Effect.fail(new Odd({ x })),
  ),
  Model.stream(Count, ({ TO, THEN }) =>
    Stream.range(1, TO).pipe(
      Stream.rechunk(1),
      Stream.map((N) => {
        made = N
        return { N, PAD: Tensor.make("UINT8", [20_000], new Uint8Array(20_000)) }
      }),
      Stream.concat(
        THEN === "end"
          ? Stream.empty
          : THEN === "nothing"
            ? Stream.never
            : Stream.fail(new Errors.QueueFull({ message: "no room" })),
      ),
      Stream.ensuring(Effect.sync(() => left())),
    ),
  ),
  Model.each(Waiting, () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => left()))),
)

const anywhere = { host: "127.0.0.1", port: 0 } as const
const start = () => Server.start([Twice, Count, Waiting], live, { http: anywhere, grpc: false, metrics: false })
let server: Awaited<ReturnType<typeof start>>
beforeAll(async () => void (server = await start()))
afterAll(() => server.stop())
const url = () => `http://127.0.0.1:${server.http.port}`

describe("one response", () => {
  it("comes back, with its parameters; batches go in chunks", async () => {
    await using twice = await Client.connect(Twice, { url: url() })
    expect(await twice.infer({ x: 2 })).toEqual({ y: 4 })
    expect((await twice.withParameters.infer({ x: 2 })).parameters).toEqual({ language: "de" })
    const x = Tensor.make(
      "INT32",
      [9, 1],
      Int32Array.from({ length: 9 }, (_, row) => 2 * row),
    )
    expect([...(await twice.inferBatch({ x })).y.data]).toEqual([...x.data].map((value) => 2 * value))
  })

  it("by a layer, and errors by their classes", async () => {
    const failure = Effect.flip(Effect.flatMap(Twice, (twice) => twice.infer({ x: 3 })))
    const odd = await Effect.runPromise(Effect.provide(failure, Client.layer(Twice, { url: url() })))
    expect(odd).toEqual(new Odd({ x: 3 }))
  })

  it("that is not waited for any more is taken back on the server", async () => {
    await using waiting = await Client.connect(Waiting, { url: url() })
    const gone = whenLeft()
    await expect(waiting.infer({}, { timeout: "1 second" })).rejects.toMatchObject({ _tag: "DeadlineExceeded" })
    await gone
  })

  it("fails with Unavailable if the server does not answer or the client is closed", async () => {
    const refused = createServer().listen(0, "127.0.0.1")
    await once(refused, "listening")
    const { port } = refused.address() as AddressInfo
    await new Promise((resolve) => refused.close(resolve))
    await using nobody = await Client.connect(Twice, { url: `http://127.0.0.1:${port}` })
    await expect(nobody.infer({ x: 2 })).rejects.toMatchObject({ _tag: "Unavailable" })
    const closed = await Client.connect(Waiting, { url: url() })
    const call = expect(closed.infer({})).rejects.toMatchObject({ _tag: "Unavailable" })
    await closed.close()
    await call
  })

  it("that is too large is an ExecutionFailed", async () => {
    await using twice = await Client.connect(Twice, { url: url(), maxResponseSize: 10 })
    await expect(twice.infer({ x: 2 })).rejects.toEqual(
      new Errors.ExecutionFailed({ message: "the response exceeds maxResponseSize, 10 bytes" }),
    )
  })
})

describe("streams", () => {
  const numbers = async (stream: AsyncIterable<{ readonly N: number }>) => {
    const all: Array<number> = []
    for await (const { N } of stream) all.push(N)
    return all
  }

  it("come to their end", async () => {
    await using count = await Client.connect(Count, { url: url() })
    expect(await numbers(count.stream({ TO: 30, THEN: "end" }))).toEqual(Array.from({ length: 30 }, (_, n) => n + 1))
  })

  it("fail ahead of the first response, and behind it with the text alone", async () => {
    await using count = await Client.connect(Count, { url: url() })
    const ahead = numbers(count.stream({ TO: 0, THEN: "failure" }))
    await expect(ahead).rejects.toEqual(new Errors.QueueFull({ message: "no room" }))
    const behind = numbers(count.stream({ TO: 1, THEN: "failure" }))
    await expect(behind).rejects.toEqual(new Errors.ExecutionFailed({ message: "no room" }))
  })

  it("end on the server when their reader leaves", async () => {
    await using count = await Client.connect(Count, { url: url() })
    const gone = whenLeft()
    for await (const { N } of count.stream({ TO: 2, THEN: "nothing" })) if (N === 2) break
    await gone
  })

  it("are slowed by a reader that is slow", async () => {
    await using count = await Client.connect(Count, { url: url() })
    await using twice = await Client.connect(Twice, { url: url() })
    const reader = count.stream({ TO: 3000, THEN: "end" })[Symbol.asyncIterator]()
    await reader.next()
    for (let x = 0; x < 200; x++) await twice.infer({ x: 2 })
    expect(made).toBeLessThan(1500)
    await reader.return?.()
  })

  it("of more bytes than maxResponseSize end", async () => {
    await using count = await Client.connect(Count, { url: url(), maxResponseSize: 1000 })
    await expect(numbers(count.stream({ TO: 1, THEN: "end" }))).rejects.toMatchObject({
      _tag: "ExecutionFailed",
      message: "a response exceeds maxResponseSize, 1000 bytes",
    })
  })
})

it("a URL of gRPC is an InvalidUrl", async () => {
  const message = "A browser needs a URL that begins with http:// or https://, but grpc://models was given"
  const refused = Effect.flip(Effect.provide(Effect.void, Client.layer(Twice, { url: "grpc://models" })))
  expect(await Effect.runPromise(refused)).toMatchObject({ _tag: "InvalidUrl", message })
  await expect(Client.connect(Twice, { url: "grpc://models" })).rejects.toMatchObject({ _tag: "InvalidUrl", message })
})
