/** Batching options of models, over sockets: one model with all options, called over gRPC and over HTTP. */
import { Client } from "@nereid/client"
import { Errors, Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

/** Rows at which a batch closes immediately; tests send exactly this number. */
const together = 4

class Sum extends Model.Service<Sum>()("sum", {
  inputs: {
    x: Tensor.FP32("n"),
    mask: Tensor.optional(Tensor.FP32("n"), { default: 1 }),
    scale: Tensor.optional(Tensor.scalar("FP32"), { default: 10 }),
    note: Tensor.optional(Tensor.utf8()),
  },
  outputs: { x: Tensor.FP32("n"), sum: Tensor.scalar("FP32"), batch: Tensor.utf8() },
  maxBatchSize: 16,
  batching: {
    maxQueueDelay: "10 seconds",
    preferredBatchSizes: [together],
    padTo: "preferred",
    ragged: { n: { pad: { x: 99 } } },
    groupBy: { inputs: ["scale"], parameters: ["language"] },
    onFailure: "bisect",
  },
}) {}

/** Reports for each row the batch that it was part of. */
const SumLive = Model.batch(Sum, ({ x, mask, note }, { value, requests }) => {
  if (x.data.includes(-1)) throw new Errors.InvalidRequest({ message: "poison" })
  const [rows, length] = x.shape
  const scale = value("scale")
  const masked = x.data.map((one, index) => one * (mask.data[index] ?? 0))
  const sums = Float32Array.from({ length: rows }, (_, row) =>
    masked.subarray(row * length, (row + 1) * length).reduce((sum, one) => sum + one * scale, 0),
  )
  const text = `${requests.length} in ${rows}x${length}${note === undefined ? "" : " noted"}`
  return {
    x,
    sum: Tensor.make("FP32", [rows, 1], sums),
    batch: Tensor.make(
      "BYTES",
      [rows, 1],
      Array.from({ length: rows }, () => new TextEncoder().encode(text)),
    ),
  }
})

const row = (...values: ReadonlyArray<number>) => Tensor.make("FP32", [values.length], Float32Array.from(values))

const anyPort = { host: "127.0.0.1", port: 0 }
const start = () => Server.start([Sum], SumLive, { http: anyPort, grpc: anyPort, metrics: false })

let server: Awaited<ReturnType<typeof start>>
beforeAll(async () => {
  server = await start()
})
afterAll(() => server.stop())

describe.each(["grpc", "http"] as const)("over %s", (transport) => {
  const connect = () => Client.connect(Sum, { url: `${transport}://127.0.0.1:${server[transport].port}` })

  it("defaults are filled in, and requests of different lengths share a batch and have their own back", async () => {
    await using model = await connect()
    const responses = await Promise.all([
      model.infer({ x: row(1) }),
      model.infer({ x: row(1, 2, 3) }),
      model.infer({ x: row(1, 2), mask: row(0, 1) }),
      model.infer({ x: row(5, 5), scale: 10 }),
    ])
    expect(responses.map(({ x }) => x.shape)).toEqual([[1], [3], [2], [2]])
    expect(responses.map(({ batch }) => batch)).toEqual(Array(together).fill("4 in 4x3"))
    // Where a request has left the mask out its default is padded too: with 0, as a mask is.
    expect(responses.map(({ sum }) => sum)).toEqual([10, 60, 20, 100])
  })

  it("requests with an input that others lack, of another value or parameter, do not share a batch", async () => {
    await using model = await connect()
    const kinds = [{}, { note: "" }, { scale: 3 }]
    const parameters = { language: "de" }
    const responses = await Promise.all([
      ...kinds.flatMap((kind) => Array.from({ length: together }, () => model.infer({ x: row(2), ...kind }))),
      ...Array.from({ length: together }, () => model.infer({ x: row(2) }, { parameters })),
    ])
    expect(responses.map(({ batch }) => batch)).toEqual(
      [0, 1, 2, 3].flatMap((kind) => Array(together).fill(`4 in 4x1${kind === 1 ? " noted" : ""}`)),
    )
    expect(responses.map(({ sum }) => sum)).toEqual([20, 20, 6, 20].flatMap((sum) => Array(together).fill(sum)))
  })

  it("a request whose rows differ has its answer in its order", async () => {
    await using model = await connect()
    const x = Tensor.make("FP32", [8, 1], Float32Array.from([1, 2, 3, 4, 5, 6, 7, 8]))
    const scale = Tensor.make("FP32", [8, 1], Float32Array.from([1, 2, 1, 2, 1, 2, 1, 2]))
    const { sum } = await model.inferBatch({ x, scale })
    expect([...sum.data]).toEqual([1, 4, 3, 8, 5, 12, 7, 16])
  })

  it("one that is poisoned fails alone", async () => {
    await using model = await connect()
    const responses = await Promise.allSettled([1, -1, 3, 4].map((value) => model.infer({ x: row(value) })))
    expect(
      responses.map((response) => (response.status === "fulfilled" ? response.value.sum : response.reason)),
    ).toEqual([10, expect.objectContaining({ _tag: "InvalidRequest", message: "poison" }), 30, 40])
  })
})

it("the metadata shows optional inputs", async () => {
  const response = await fetch(`http://127.0.0.1:${server.http.port}/v2/models/sum/config`)
  expect(await response.json()).toMatchObject({
    input: [
      { name: "x" },
      { name: "mask", optional: true },
      { name: "scale", optional: true },
      { name: "note", optional: true },
    ],
  })
})
