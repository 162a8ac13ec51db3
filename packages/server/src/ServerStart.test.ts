/** `Server.start` without Effect: start, requests, stop, and another start. */
import { createServer, type AddressInfo } from "node:net"
import { expect, it, onTestFinished } from "vitest"
import { Errors, Model, Tensor } from "@nereid/core"
import { Data, Deferred, Effect, Layer } from "effect"
import * as Server from "./Server.ts"

const fields = { inputs: { x: Tensor.INT32(1) }, outputs: { x: Tensor.INT32(1) } }

class Echo extends Model.Service<Echo>()("echo", fields) {}
class Other extends Model.Service<Other>()("other", fields) {}

const same = ({ x }: Model.Sample<typeof fields.inputs>) => Effect.succeed({ x })

const echo = Model.each(Echo, same)
const other = Model.each(Other, same)

/** Model that counts its loaded instances. */
const counted = () => {
  const instances = { loaded: 0, ever: 0 }
  const load = Effect.sync(() => {
    instances.loaded += 1
    instances.ever += 1
    return same
  })
  const unload = () => Effect.sync(() => (instances.loaded -= 1))
  return { instances, layer: Model.each(Echo, Effect.acquireRelease(load, unload)) }
}

const anywhere = { host: "127.0.0.1", port: 0 } as const
const free = { http: anywhere, grpc: anywhere, metrics: anywhere }

const infer = async (port: number, model = "echo") => {
  const body = JSON.stringify({ inputs: [{ name: "x", shape: [1], datatype: "INT32", data: [7] }] })
  const response = await fetch(`http://127.0.0.1:${port}/v2/models/${model}/infer`, { method: "POST", body })
  return [response.status, await response.json()]
}

const responded = [200, expect.objectContaining({ outputs: [expect.objectContaining({ data: [7] })] })]

/** Holds a port until the end of the test; fails if it is in use. */
const take = async (port: number) => {
  const holder = createServer()
  await new Promise<void>((resolve, reject) => {
    holder.once("error", reject).listen({ host: "127.0.0.1", port }, resolve)
  })
  onTestFinished(() => void holder.close())
  return (holder.address() as AddressInfo).port
}

it("requests right after a start on a port that was just stopped do not meet closed connections", async () => {
  const options = { grpc: false, metrics: false } as const
  let server = await Server.start([Echo], echo, { ...options, http: anywhere })
  const { port } = server.http
  for (let round = 0; round < 5; round++) {
    // So many connections that a client does not notice the end of all of them in one turn.
    const responses = await Promise.all(Array.from({ length: 40 }, () => infer(port)))
    expect(responses).toEqual(responses.map(() => responded))
    await server.stop()
    server = await Server.start([Echo], echo, { ...options, http: { ...anywhere, port } })
  }
  await server.stop()
})

it("serves until it is stopped, and then its ports are free", async () => {
  const server = await Server.start([Echo, Other], Layer.mergeAll(echo, other), free)
  expect(server.models.map(({ description: { name } }) => name)).toEqual(["echo", "other"])
  expect(server.isReady()).toBe(true)
  expect(await infer(server.http.port)).toEqual(responded)
  expect(await infer(server.http.port, "other")).toEqual(responded)
  await server.stop()
  expect(server.isReady()).toBe(false)
  for (const { port } of [server.http, server.grpc, server.metrics]) expect(await take(port)).toBe(port)
})

it("has no address for what is turned off", async () => {
  await using server = await Server.start([Echo], echo, { http: anywhere, grpc: false, metrics: false })
  expect([server.http.port > 0, server.grpc, server.port, server.metrics]).toEqual([true, ...Array(3)])
})

it("serves everything on one port if configured", async () => {
  await using server = await Server.start([Echo], echo, { http: false, grpc: false, port: anywhere, metrics: false })
  expect(await infer(server.port.port)).toEqual(responded)
})

it("may be stopped again, at any time", async () => {
  const server = await Server.start([Echo], echo, free)
  await Promise.all([server.stop(), server.stop()])
  await server.stop()
})

it("starts again on the port of one that has stopped", async () => {
  const start = (http: Server.Address) => Server.start([Echo], echo, { ...free, http })
  const first = await start(anywhere)
  expect(await infer(first.http.port)).toEqual(responded)
  await first.stop()
  await using second = await start(first.http)
  expect(second.http).toEqual(first.http)
  expect(await infer(second.http.port)).toEqual(responded)
})

it("stops at the end of the block that uses it, and answers what is in flight", async () => {
  const entered = Deferred.makeUnsafe<void>()
  const gate = Deferred.makeUnsafe<void>()
  const patient = Model.each(Echo, ({ x }) =>
    Deferred.succeed(entered, undefined).pipe(Effect.andThen(Deferred.await(gate)), Effect.as({ x })),
  )
  const stopWhileInFlight = async () => {
    await using server = await Server.start([Echo], patient, free)
    // In an object, so that it is not awaited.
    const inFlight = { response: infer(server.http.port), port: server.http.port }
    await Effect.runPromise(Deferred.await(entered))
    setImmediate(() => Deferred.doneUnsafe(gate, Effect.void))
    return inFlight
  }
  const { response, port } = await stopWhileInFlight()
  expect(await response).toEqual(responded)
  await take(port)
})

it("several live in one process, each with its own instances", async () => {
  const { instances, layer } = counted()
  const first = await Server.start([Echo], layer, free)
  await using second = await Server.start([Echo], layer, free)
  expect(instances.loaded).toBe(2)
  await first.stop()
  expect(instances.loaded).toBe(1)
  expect(await infer(second.http.port)).toEqual(responded)
})

class NoWeights extends Data.TaggedError("NoWeights")<{ readonly message: string }> {}

const fronts = ["http", "grpc", "metrics"] as const

it.each(fronts)("rejects where the port for %s is in use, and leaves nothing open", async (front) => {
  const port = await take(0)
  const { instances, layer } = counted()
  const probe = await Server.start([Echo], echo, free)
  await probe.stop()
  const { http, grpc, metrics } = probe
  const ports = { http, grpc, metrics, [front]: { host: "127.0.0.1", port } }
  await expect(Server.start([Echo], layer, ports)).rejects.toMatchObject({
    _tag: "ServeError",
    message: expect.stringMatching(new RegExp(`^cannot listen for .* on 127.0.0.1:${port}: .*EADDRINUSE`)),
  })
  expect(instances).toEqual({ loaded: 0, ever: 0 })
  for (const other of fronts) if (other !== front) await take(probe[other].port)
})

it("rejects with the error of a model that cannot be loaded, and unloads the others", async () => {
  const { instances, layer } = counted()
  const broken = Model.each(Other, Effect.as(new NoWeights({ message: "other.bin is empty" }), same))
  const start = Server.start([Echo, Other], broken.pipe(Layer.provideMerge(layer)), free)
  await expect(start).rejects.toThrow(new NoWeights({ message: "other.bin is empty" }))
  expect(instances).toEqual({ loaded: 0, ever: 1 })
})

it("rejects where a model is given twice", async () => {
  await expect(Server.start([Echo, Echo], echo, free)).rejects.toMatchObject({
    _tag: "ServeError",
    message: expect.stringContaining("Model 'echo' version 1 is given more than once"),
  })
})

it("reports that it has stopped, on request or because of an unrecoverable model", async () => {
  const started = await Server.start([Echo], echo, free)
  await started.stop()
  expect(await started.stopped).toBeUndefined()

  const lost = new Errors.Unrecoverable({ message: "the device is lost" })
  const received: Array<unknown> = []
  const { instances, layer } = counted()
  const onUnrecoverable = (error: unknown) => received.push(error)
  const server = await Server.start(
    [Echo, Other],
    Layer.merge(
      layer,
      Model.each(Other, () => Effect.fail(lost)),
    ),
    { ...free, onUnrecoverable, drainTimeout: "1 second" },
  )
  expect(await infer(server.http.port, "other")).toEqual([500, { error: "the device is lost" }])
  expect(await server.stopped).toBe(lost)
  expect([server.isReady(), instances.loaded, received]).toEqual([false, 0, [lost]])
  await take(server.http.port)
  await server.stop()
})
