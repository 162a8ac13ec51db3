/**
 * Models that call models, seen from outside: over HTTP and gRPC, with the server's statistics.
 * packages/core/src/call/Caller.test.ts tests what an inner call inherits from its request.
 */
import { Client } from "@nereid/client"
import { Errors, Model, Registry, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Effect, Layer } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

const fields = {
  inputs: { x: Tensor.scalar("INT32") },
  outputs: { y: Tensor.scalar("INT32") },
  maxBatchSize: 8,
} as const

class Double extends Model.Service<Double>()("double", fields) {}
class Increase extends Model.Service<Increase>()("increase", fields) {}
class Chain extends Model.Service<Chain>()("chain", fields) {}
class Route extends Model.Service<Route>()("route", {
  inputs: { MODEL: Tensor.utf8(), x: Tensor.INT32(1) },
  outputs: { y: Tensor.INT32(1) },
  maxBatchSize: 8,
}) {}

let entered = () => {}
let left = () => {}

/** Negative numbers are refused, and 1000 is never answered. */
const DoubleLive = Model.each(Double, ({ x }) => {
  if (x < 0) return Effect.fail(new Errors.InvalidRequest({ message: `${x} is below 0` }))
  if (x < 1000) return Effect.succeed({ y: x * 2 })
  entered()
  return Effect.onInterrupt(Effect.never, () => Effect.sync(left))
})
const IncreaseLive = Model.each(Increase, ({ x }) => ({ y: x + 1 }))

/** (x + 1) · 2 */
const ChainLive = Model.each(
  Chain,
  Effect.gen(function* () {
    const [increase, double] = [yield* Increase, yield* Double]
    return ({ x }) => Effect.flatMap(increase.infer({ x }), ({ y }) => double.infer({ x: y }))
  }),
).pipe(Layer.provideMerge([DoubleLive, IncreaseLive]))

const RouteLive = Model.each(
  Route,
  Effect.map(Registry, (models) => async ({ MODEL, x }, { run }) => {
    const { y } = await run(models.infer(MODEL, { x }))
    return { y: y as Tensor.Tensor<"INT32", readonly [1]> }
  }),
).pipe(Layer.provide(Registry.layer))

const anywhere = { host: "127.0.0.1", port: 0 } as const
const start = () =>
  Server.start([Chain, Route, Increase, Double], Layer.merge(ChainLive, RouteLive), {
    http: anywhere,
    grpc: anywhere,
    metrics: false,
  })
let server: Awaited<ReturnType<typeof start>>
beforeAll(async () => void (server = await start()))
afterAll(() => server.stop())

const url = (path: string) => `http://127.0.0.1:${server.http.port}/v2/models/${path}`

const infer = async (model: string, inputs: ReadonlyArray<object>, signal?: AbortSignal) => {
  const response = await fetch(url(`${model}/infer`), {
    method: "POST",
    headers: { connection: "close" },
    body: JSON.stringify({ inputs }),
    ...(signal === undefined ? {} : { signal }),
  })
  return { status: response.status, tag: response.headers.get("nereid-error"), body: await response.json() }
}
const number = (x: number) => ({ name: "x", shape: [1, 1], datatype: "INT32", data: [x] })
const text = (name: string, value: string) => ({ name, shape: [1, 1], datatype: "BYTES", data: [value] })

/** How many requests a model has answered, in how many executions. */
const counts = async (model: string) => {
  const response = await fetch(url(`${model}/stats`), { headers: { connection: "close" } })
  const { model_stats: all } = (await response.json()) as {
    readonly model_stats: ReadonlyArray<{
      readonly inference_count: number
      readonly execution_count: number
      readonly inference_stats: { readonly success: { readonly count: number } }
    }>
  }
  const requests = all[0]?.inference_stats.success.count ?? 0
  return { requests, rows: all[0]?.inference_count ?? 0, executions: all[0]?.execution_count ?? 0 }
}

describe("a chain of models", () => {
  it("is one request to its caller, and one to each model in it", async () => {
    const before = { increase: await counts("increase"), double: await counts("double") }
    expect((await infer("chain", [number(3)])).body).toMatchObject({ outputs: [{ name: "y", data: [8] }] })
    expect((await counts("increase")).requests).toBe(before.increase.requests + 1)
    expect((await counts("double")).requests).toBe(before.double.requests + 1)
  })

  it("shares batches of its inner models among the requests that come together", async () => {
    const before = await counts("double")
    await using chain = await Client.connect(Chain, { url: `grpc://127.0.0.1:${server.grpc.port}` })
    const responses = await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map((x) => chain.infer({ x })))
    expect(responses).toEqual([4, 6, 8, 10, 12, 14, 16, 18].map((y) => ({ y })))
    const after = await counts("double")
    expect(after.rows - before.rows).toBe(8)
    expect(after.executions - before.executions).toBeLessThan(8)
  })

  it("fails with what failed in it, over HTTP and over gRPC", async () => {
    expect(await infer("chain", [number(-5)])).toEqual({
      status: 400,
      tag: "InvalidRequest",
      body: { error: "-4 is below 0" },
    })
    await using chain = await Client.connect(Chain, { url: `grpc://127.0.0.1:${server.grpc.port}` })
    await expect(chain.infer({ x: -5 })).rejects.toEqual(new Errors.InvalidRequest({ message: "-4 is below 0" }))
  })

  it("ends in all of its models when its caller disconnects", async () => {
    const inside = new Promise<void>((resolve) => (entered = resolve))
    const outside = new Promise<void>((resolve) => (left = resolve))
    const disconnect = new AbortController()
    const response = infer("chain", [number(999)], disconnect.signal)
    await inside
    disconnect.abort()
    await expect(response).rejects.toThrow()
    await outside
  })

  it("and when its deadline, given over gRPC, has passed", async () => {
    const inside = new Promise<void>((resolve) => (entered = resolve))
    const outside = new Promise<void>((resolve) => (left = resolve))
    await using chain = await Client.connect(Chain, { url: `grpc://127.0.0.1:${server.grpc.port}` })
    const response = chain.infer({ x: 999 }, { timeout: "1 second" })
    await inside
    await expect(response).rejects.toMatchObject({ _tag: "DeadlineExceeded" })
    await outside
  })
})

describe("a model that another model receives by name", () => {
  const route = (model: string, x: number) => infer("route", [text("MODEL", model), number(x)])

  it("is called, and the others are not", async () => {
    const before = await counts("double")
    expect((await route("increase", 3)).body).toMatchObject({ outputs: [{ name: "y", data: [4] }] })
    expect(await counts("double")).toEqual(before)
  })

  it("may call models itself", async () => {
    expect((await route("chain", 3)).body).toMatchObject({ outputs: [{ name: "y", data: [8] }] })
  })

  it("that does not exist fails the outer request with not found", async () => {
    expect(await route("nobody", 3)).toEqual({
      status: 404,
      tag: "ModelNotFound",
      body: { error: "Request for unknown model: 'nobody' is not found" },
    })
  })

  it("must have the inputs of the call", async () => {
    const { status, body } = await route("route", 3)
    expect(status).toBe(400)
    expect(body).toMatchObject({ error: expect.stringContaining("but missing required input(s) ['MODEL']") })
  })
})
