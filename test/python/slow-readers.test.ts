/** Slow readers of models in Python over HTTP and gRPC, and behind ensembles. */
import { once } from "node:events"
import { type ClientRequest, type IncomingMessage, request as httpRequest } from "node:http"
import { describe, expect, it, onTestFinished } from "vitest"
import { python } from "../fixtures/python.ts"
import { type InferRequest, type Served, serve, text } from "./PythonRepository.ts"
import { models, sentBeforeWait } from "./Streams.ts"

const megabyte = 1_000_000

/** Responses of a megabyte that fit into what waits for a reader, and the buffers of the sockets. */
const bound = 32

/** A stream of events of which nothing is read yet. */
const events = async (server: Served, model: string, code: string) => {
  const call: ClientRequest = httpRequest(`${server.address}/v2/models/${model}/generate_stream`, { method: "POST" })
  onTestFinished(() => void call.destroy())
  call.on("error", () => {})
  call.end(JSON.stringify({ TEXT: code }))
  const [response]: Array<IncomingMessage> = await once(call, "response")
  const read = async () => {
    let count = 0
    response?.setEncoding("utf8").on("data", (part: string) => (count += part.split("data: ").length - 1))
    if (response !== undefined) await once(response, "end")
    return count
  }
  return { call, read }
}

const streamOf = (code: string): InferRequest => ({
  modelName: "streams",
  inputs: [
    { name: "TEXT", datatype: "BYTES", shape: [1n, 1n], contents: { bytesContents: [new TextEncoder().encode(code)] } },
  ],
})

describe.skipIf(python === undefined)("a stream of a model in Python", () => {
  it.each(["execute", "thread", "loop", "tasks"])("waits for a slow reader over HTTP, from %s", async (form) => {
    const server = await serve(await models())
    const { read } = await events(server, "streams", `${form} 100 ${megabyte}`)
    expect(await sentBeforeWait(server)).toBeLessThan(bound)
    expect(await read()).toBe(100)
    await expect.poll(server.log).toContain("ended after 100")
    expect((await server.statistics("streams")).response_stats["99"].success.count).toBe(1)
  })

  it("waits for a slow reader over gRPC", async () => {
    const server = await serve(await models())
    const responses = server.rpc.modelStreamInfer(requests(streamOf(`execute 100 ${megabyte}`)))[Symbol.asyncIterator]()
    await responses.next()
    // A gRPC stream has another 16.
    expect(await sentBeforeWait(server)).toBeLessThan(bound + 16)
    let count = 1
    while ((await responses.next()).done !== true) count += 1
    expect(count).toBe(100)
  })

  it("waits for a slow reader of its ensemble", async () => {
    const server = await serve(await models())
    const { read } = await events(server, "chain", `execute 100 ${megabyte}`)
    // The ensemble has another 16 in flight.
    expect(await sentBeforeWait(server)).toBeLessThan(bound + 16)
    expect(await read()).toBe(100)
  })

  it("holds memory of its caller while responses wait, which refuses other requests", async () => {
    const server = await serve(await models(), { server: { maxInFlightSize: 8 * megabyte } })
    const { read } = await events(server, "streams", `execute 60 ${megabyte}`)
    await sentBeforeWait(server)
    const refused = await server.infer("bls", [text("IN", "return 1")])
    expect(refused).toMatchObject({ status: 503, error: expect.stringMatching(/callers hold 1\d{7} bytes/) })
    expect(await read()).toBe(60)
    expect((await server.infer("bls", [text("IN", "return 1")])).status).toBe(200)
  })

  it("goes on when a client that does not read disconnects", async () => {
    const server = await serve(await models())
    const { call } = await events(server, "streams", `execute 100 ${megabyte}`)
    await sentBeforeWait(server)
    call.destroy()
    await expect.poll(server.log).toContain("ended after 100")
    expect((await server.stream(streamOf("execute 2"))).length).toBe(2)
  })

  it("ends when the server stops", async () => {
    const server = await serve(await models(), { server: { drainTimeout: 1 } })
    await events(server, "streams", `execute 100 ${megabyte}`)
    await sentBeforeWait(server)
    await server.stop()
    expect(server.log()).toContain("ended after 100")
  })
})

const requests = async function* (...all: ReadonlyArray<InferRequest>) {
  yield* all
}
