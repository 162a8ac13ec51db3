/**
 * Decoupled models over sockets: the responses of one handler to the typed client over gRPC and HTTP, to plain HTTP and
 * in process. A slow reader slows the handler, and a cancelled call ends it.
 */
import { Client } from "@nereid/client"
import { Errors, Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Effect, Layer, Stream } from "effect"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"

class Count extends Model.Service<Count>()("count", {
  inputs: {
    TO: Tensor.scalar("INT32"),
    /** Bytes beside each number. */
    SIZE: Tensor.optional(Tensor.scalar("INT32")),
    /** Behavior after the last number. Default: the stream ends. */
    THEN: Tensor.optional(Tensor.labels(["nothing", "failure"])),
  },
  outputs: { N: Tensor.scalar("INT32"), PAD: Tensor.UINT8("size") },
  maxBatchSize: 4,
}) {}

class Twice extends Model.Service<Twice>()("twice", {
  inputs: { x: Tensor.scalar("INT32") },
  outputs: { y: Tensor.scalar("INT32") },
  maxBatchSize: 4,
}) {}

/** Fields that JSON cannot express: two variable dims, FP16, and bytes that are not text. */
const unspeakable = {
  inputs: { x: Tensor.FP32("rows", "columns"), half: Tensor.FP16("n"), raw: Tensor.BYTES(1) },
  outputs: { x: Tensor.FP32("rows", "columns"), half: Tensor.FP16("n"), raw: Tensor.BYTES(1) },
} as const

class Mirror extends Model.Service<Mirror>()("mirror", { ...unspeakable, maxBatchSize: 2 }) {}
class Mirrors extends Model.Service<Mirrors>()("mirrors", unspeakable) {}
class Halves extends Model.Service<Halves>()("halves", { inputs: {}, outputs: { y: Tensor.BF16(1) } }) {}

const MirrorLive = Model.each(Mirror, (sample) => sample)
const MirrorsLive = Model.stream(Mirrors, (sample) => [sample, sample])
const HalvesLive = Model.stream(Halves, () => [{ y: Tensor.make("BF16", [1], Uint16Array.of(1)) }])

class Rows extends Model.Service<Rows>()("rows", {
  inputs: { x: Tensor.FP32(2) },
  outputs: { y: Tensor.FP32(2) },
  maxBatchSize: 4,
}) {}

/** All rows of the request, then each by itself. */
const RowsLive = Model.streamBatch(Rows, function* ({ x }, { rows }) {
  yield { y: x }
  for (let row = 0; row < rows; row++) yield { y: Tensor.make("FP32", [1, 2], x.data.slice(row * 2, row * 2 + 2)) }
})

/** How far the count has come, and how often it has ended. */
const seen = { made: 0, ended: 0 }
let ended = () => {}

const CountLive = Model.stream(Count, ({ TO, SIZE = 0, THEN }) =>
  Stream.range(1, TO).pipe(
    Stream.rechunk(1),
    Stream.map((N) => {
      seen.made = N
      return { N, PAD: Tensor.make("UINT8", [SIZE], new Uint8Array(SIZE)) }
    }),
    Stream.concat(
      THEN === undefined
        ? Stream.empty
        : THEN === "nothing"
          ? Stream.never
          : Stream.fail(new Errors.QueueFull({ message: "no room for more" })),
    ),
    Stream.ensuring(
      Effect.sync(() => {
        seen.ended += 1
        ended()
      }),
    ),
  ),
)
const TwiceLive = Model.each(Twice, ({ x }) => ({ y: x * 2 }))

const anywhere = { host: "127.0.0.1", port: 0 } as const
const start = () =>
  Server.start(
    [Count, Twice, Mirror, Mirrors, Halves, Rows],
    Layer.mergeAll(CountLive, TwiceLive, MirrorLive, MirrorsLive, HalvesLive, RowsLive),
    { http: anywhere, grpc: anywhere, metrics: false },
  )
let server: Awaited<ReturnType<typeof start>>
beforeAll(async () => void (server = await start()))
afterAll(() => server.stop())
beforeEach(() => void Object.assign(seen, { made: 0, ended: 0 }))

const whenEnded = () => new Promise<void>((resolve) => (ended = resolve))
const numbers = async (stream: AsyncIterable<{ readonly N: number }>) => {
  const all: Array<number> = []
  for await (const { N } of stream) all.push(N)
  return all
}

describe.each(["grpc", "http"] as const)("the typed client over %s", (protocol) => {
  const url = () => `${protocol}://127.0.0.1:${server[protocol].port}`
  const connect = () => Client.connect(Count, { url: url() })

  it.each([0, 1, 5, 12])("reads %d responses", async (TO) => {
    await using count = await connect()
    expect(await numbers(count.stream({ TO }))).toEqual(Array.from({ length: TO }, (_, index) => index + 1))
  })

  it("reads responses that are larger than what the server may be ahead by", async () => {
    await using count = await connect()
    const sizes: Array<number> = []
    for await (const { PAD } of count.stream({ TO: 3, SIZE: 300_000 })) sizes.push(PAD.data.length)
    expect(sizes).toEqual([300_000, 300_000, 300_000])
  })

  it("sends several rows in one request, and reads responses of any number of rows", async () => {
    await using rows = await Client.connect(Rows, { url: url() })
    const x = Tensor.make("FP32", [2, 2], Float32Array.of(1, 2, 3, 4))
    const shown = ({ y }: { readonly y: { readonly shape: ReadonlyArray<number>; readonly data: Float32Array } }) => [
      [...y.shape],
      [...y.data],
    ]
    const expected = [
      [
        [2, 2],
        [1, 2, 3, 4],
      ],
      [
        [1, 2],
        [1, 2],
      ],
      [
        [1, 2],
        [3, 4],
      ],
    ]
    expect((await Array.fromAsync(rows.streamBatch({ x }))).map(shown)).toEqual(expected)
    const answers = await Array.fromAsync(rows.withParameters.streamBatch({ x }))
    expect(answers.map(({ outputs }) => shown(outputs))).toEqual(expected)
  })

  it("reads the one response of a model that answers once", async () => {
    await using twice = await Client.connect(Twice, { url: url() })
    expect(await Array.fromAsync(twice.stream({ x: 4 }))).toEqual([{ y: 8 }])
  })

  it("gives what came before a failure, and then the failure", async () => {
    await using count = await connect()
    const got: Array<number> = []
    const all = async () => {
      for await (const { N } of count.stream({ TO: 3, THEN: "failure" })) got.push(N)
    }
    await expect(all()).rejects.toEqual(new Errors.QueueFull({ message: "no room for more" }))
    expect(got).toEqual([1, 2, 3])
  })

  it("is slowed by a reader that is slow, and so is the model", async () => {
    await using count = await connect()
    await using twice = await Client.connect(Twice, { url: url() })
    const reader = count.stream({ TO: 2000, SIZE: 20_000 })[Symbol.asyncIterator]()
    expect((await reader.next()).value).toMatchObject({ N: 1 })
    // Time enough for the server to get as far as it does by itself.
    for (let x = 0; x < 200; x++) await twice.infer({ x })
    // gRPC has a window; of HTTP/1.1 the kernel takes what its buffers hold.
    const ahead = seen.made
    expect(ahead).toBeLessThan(protocol === "grpc" ? 100 : 1000)
    for (let N = 2; N <= ahead + 50; N++) expect((await reader.next()).value).toMatchObject({ N })
    expect(seen.made).toBeGreaterThan(ahead)
    await reader.return?.()
  })

  it("ends the model when its reader leaves the loop", async () => {
    await using count = await connect()
    const gone = whenEnded()
    for await (const { N } of count.stream({ TO: 2, THEN: "nothing" })) if (N === 2) break
    await gone
    expect(seen.ended).toBe(1)
  })

  it("and when its signal is aborted, also while nothing comes", async () => {
    await using count = await connect()
    const abort = new AbortController()
    const gone = whenEnded()
    const reader = count.stream({ TO: 1, THEN: "nothing" }, { signal: abort.signal })[Symbol.asyncIterator]()
    await reader.next()
    const next = reader.next()
    abort.abort(new Error("enough"))
    await expect(next).rejects.toThrow("enough")
    await gone
  })

  it("ends with DeadlineExceeded when its time is over, and the model with it", async () => {
    await using count = await connect()
    const gone = whenEnded()
    await expect(numbers(count.stream({ TO: 1, THEN: "nothing" }, { timeout: "1 second" }))).rejects.toMatchObject({
      _tag: "DeadlineExceeded",
    })
    await gone
  })

  it("ends with Unavailable when it is closed", async () => {
    const count = await connect()
    const reading = numbers(count.stream({ TO: 1, THEN: "nothing" }))
    const outcome = expect(reading).rejects.toMatchObject({ _tag: "Unavailable" })
    await count.close()
    await outcome
  })

  it("a failure ahead of the first response has its tag", async () => {
    await using count = await connect()
    const none = numbers(count.stream({ TO: 0, THEN: "failure" }))
    await expect(none).rejects.toEqual(new Errors.QueueFull({ message: "no room for more" }))
  })

  it("refuses invalid inputs before sending", async () => {
    await using count = await connect()
    const bad = numbers(count.stream({ TO: 2 ** 40 }))
    await expect(bad).rejects.toMatchObject({ _tag: "InvalidRequest" })
  })
})

describe("tensors that JSON has no form for", () => {
  const sample = {
    x: Tensor.make("FP32", [2, 1], Float32Array.of(1, 2)),
    half: Tensor.make("FP16", [1], Float16Array.of(0.5)),
    raw: Tensor.make("BYTES", [1], [Uint8Array.of(255)]),
  }
  const plain = ({ x, half, raw }: Model.Sample<typeof unspeakable.outputs>) => [
    x.shape,
    [...x.data],
    [...half.data],
    raw.data,
  ]
  const url = (protocol: "grpc" | "http") => `${protocol}://127.0.0.1:${server[protocol].port}`

  it("come over HTTP too where the model answers once", async () => {
    await using mirror = await Client.connect(Mirror, { url: url("http") })
    const responses = await Array.fromAsync(mirror.stream(sample))
    expect(responses.map(plain)).toEqual([plain(sample)])
  })

  it("and over gRPC for several responses, as the error over HTTP explains", async () => {
    await using grpc = await Client.connect(Mirrors, { url: url("grpc") })
    expect((await Array.fromAsync(grpc.stream(sample))).map(plain)).toEqual([plain(sample), plain(sample)])
    await using http = await Client.connect(Mirrors, { url: url("http") })
    const reason = "'x' of model 'mirrors' has more than one dynamic dimension, which generate does not support"
    await expect(Array.fromAsync(http.stream(sample))).rejects.toEqual(
      new Errors.Unsupported({ message: `${reason}; streaming it requires gRPC` }),
    )
    await using halves = await Client.connect(Halves, { url: url("http") })
    await expect(Array.fromAsync(halves.stream({}))).rejects.toEqual(
      new Errors.Unsupported({
        message: "'y' of model 'halves' is BF16, which JSON cannot represent; streaming it requires gRPC",
      }),
    )
  })
})

describe("plain HTTP", () => {
  const http = () => `http://127.0.0.1:${server.http.port}`

  it("generate_stream reads the same handler, and ends it when its reader leaves", async () => {
    const gone = whenEnded()
    const abort = new AbortController()
    const response = await fetch(`${http()}/v2/models/count/generate_stream`, {
      method: "POST",
      body: JSON.stringify({ TO: 2, THEN: 0 }),
      signal: abort.signal,
    })
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    expect((await reader?.read())?.value).toContain('"N":1')
    abort.abort()
    await gone
    expect(seen.ended).toBe(1)
  })

  it("generate takes the one response of a model that may have more", async () => {
    const infer = async (TO: number) => {
      const body = JSON.stringify({ TO })
      const headers = { connection: "close" }
      const response = await fetch(`${http()}/v2/models/count/generate`, { method: "POST", headers, body })
      return [response.status, await response.json()]
    }
    expect(await infer(1)).toMatchObject([200, { N: 1 }])
    expect(await infer(2)).toMatchObject([501, { error: expect.stringContaining("exactly 1 response") }])
    expect(await infer(0)).toMatchObject([501, { error: expect.stringContaining("exactly 1 response") }])
  })
})

it("in process, a model without end is slowed by its reader, and ended when it has enough", async () => {
  const program = Effect.gen(function* () {
    const count = yield* Count
    return yield* Stream.runCollect(Stream.take(count.stream({ TO: 100_000 }), 3))
  })
  const three = await Effect.runPromise(Effect.provide(program, CountLive))
  expect(three.map(({ N }) => N)).toEqual([1, 2, 3])
  expect(seen.made).toBeLessThan(100)
  expect(seen.ended).toBe(1)
})
