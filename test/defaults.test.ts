/** Client-side defaults of omitted inputs, at a server that does not support defaults, such as Triton. */
import { Client } from "@nereid/client"
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Effect, Schema } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

class Blur extends Model.Service<Blur>()("blur", {
  inputs: {
    x: Tensor.FP32("n"),
    radius: Tensor.optional(Tensor.scalar("INT32"), { default: 3 }),
    weights: Tensor.optional(Tensor.FP32("n"), { default: 0.5 }),
    mask: Tensor.optional(Tensor.BOOL("n")),
  },
  outputs: { TOLD: Tensor.utf8() },
  parameters: {
    mode: Schema.Literals(["wrap", "cut"]).pipe(Schema.withDecodingDefaultKey(Effect.succeed("cut" as const))),
    limit: Schema.optionalKey(Schema.Int),
    sigma: Schema.Finite,
  },
  maxBatchSize: 4,
}) {}

/** The same without a default. */
class Foreign extends Model.Service<Foreign>()("blur", {
  inputs: {
    x: Tensor.FP32("n"),
    radius: Tensor.optional(Tensor.scalar("INT32")),
    weights: Tensor.optional(Tensor.FP32("n")),
    mask: Tensor.optional(Tensor.BOOL("n")),
  },
  outputs: { TOLD: Tensor.utf8() },
  maxBatchSize: 4,
}) {}

const ForeignLive = Model.each(Foreign, ({ radius, weights, mask }, { parameters }) => {
  const printed = Object.entries(parameters).map(([name, value]) => `${name}=${value}`)
  return { TOLD: `${radius} [${weights?.data}] ${mask?.data} ${printed.toSorted()}` }
})

const anywhere = { host: "127.0.0.1", port: 0 } as const
const start = () => Server.start([Foreign], ForeignLive, { http: anywhere, grpc: anywhere, metrics: false })
let server: Awaited<ReturnType<typeof start>>
beforeAll(async () => void (server = await start()))
afterAll(() => server.stop())

const x = (...values: ReadonlyArray<number>) => Tensor.make("FP32", [values.length], Float32Array.from(values))

describe.each(["grpc", "http"] as const)("over %s", (protocol) => {
  const connect = () => Client.connect(Blur, { url: `${protocol}://127.0.0.1:${server[protocol].port}` })

  it("inputs and parameters that are left out are sent with their defaults, and others are not sent", async () => {
    await using blur = await connect()
    const { TOLD } = await blur.infer({ x: x(1, 2, 3) }, { parameters: { sigma: 1 } })
    expect(TOLD).toBe("3 [0.5,0.5,0.5] undefined mode=cut,sigma=1")
  })

  it("sends given values unchanged", async () => {
    await using blur = await connect()
    const { TOLD } = await blur.infer(
      { x: x(1), radius: 7, weights: x(2) },
      { parameters: { sigma: 1, mode: "wrap", limit: 2 } },
    )
    expect(TOLD).toMatch(/^7 \[2\] undefined limit=2,mode=wrap,sigma=1$/)
  })

  it("of batches, for every row; and of streams", async () => {
    await using blur = await connect()
    const batch = await blur.inferBatch(
      { x: Tensor.make("FP32", [2, 2], new Float32Array(4)) },
      { parameters: { sigma: 0 } },
    )
    const texts = batch.TOLD.data.map((bytes) => new TextDecoder().decode(bytes))
    expect(texts).toEqual(Array(2).fill("3 [0.5,0.5] undefined mode=cut,sigma=0"))
    const [streamed] = await Array.fromAsync(blur.stream({ x: x(1) }, { parameters: { sigma: 0 } }))
    expect(streamed?.TOLD).toBe("3 [0.5] undefined mode=cut,sigma=0")
  })
})
