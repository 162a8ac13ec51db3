/** Slow readers of models in Python over HTTP and gRPC, behind ensembles, and in the code of other models. */
import { once } from "node:events"
import { writeFileSync } from "node:fs"
import { type ClientRequest, type IncomingMessage, request as httpRequest } from "node:http"
import { join } from "node:path"
import { describe, expect, it, onTestFinished } from "vitest"
import { python } from "../fixtures/python.ts"
import { type InferRequest, type Served, serve, text, write } from "./PythonRepository.ts"

const texts =
  'input { name: "TEXT" data_type: TYPE_STRING dims: 1 } output { name: "ANSWER" data_type: TYPE_STRING dims: 1 }'
const decoupled = "model_transaction_policy { decoupled: true }"
const calling =
  'input { name: "IN" data_type: TYPE_STRING dims: 1 } output { name: "OUT" data_type: TYPE_STRING dims: 1 }'

const models = async () => {
  const fixture = await write({
    streams: { file: "triton_streams", config: `max_batch_size: 4 ${texts} ${decoupled}` },
    bls: { file: "triton_sync", config: calling },
  })
  fixture.write("chain/1/README", "An ensemble has no file.")
  fixture.write(
    "chain/config.pbtxt",
    `platform: "ensemble" max_batch_size: 4 ${texts} ${decoupled} ensemble_scheduling { step [ {
      model_name: "streams" model_version: -1 input_map { key: "TEXT" value: "TEXT" } output_map { key: "ANSWER" value: "ANSWER" }
    } ] }`,
  )
  return fixture
}

const megabyte = 1_000_000

/** Responses of a megabyte that fit into what waits for a reader, and the buffers of the sockets. */
const bound = 32

/** How many responses the model has sent when it waits first. */
const sentBeforeWait = async ({ log }: Pick<Served, "log">): Promise<number> => {
  await expect.poll(log).toMatch(/waits after \d+/)
  return Number([...log().matchAll(/waits after (\d+)/g)].at(-1)?.[1])
}

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

  it("goes on when a client that does not read disconnects", async () => {
    const server = await serve(await models())
    const { call } = await events(server, "streams", `execute 100 ${megabyte}`)
    await sentBeforeWait(server)
    call.destroy()
    await expect.poll(server.log).toContain("ended after 100")
    expect((await server.stream(streamOf("execute 2"))).length).toBe(2)
  })

  it("ends when the server stops", async () => {
    const server = await serve(await models(), {}, { drainTimeout: 1 })
    await events(server, "streams", `execute 100 ${megabyte}`)
    await sentBeforeWait(server)
    await server.stop()
    expect(server.log()).toContain("ended after 100")
  })
})

/** A request to `streams`, for code of `bls`. */
const request = `def streams(text):
    tensor = pb.Tensor("TEXT", np.array([[text]], dtype=np.object_))
    return pb.InferenceRequest(model_name="streams", inputs=[tensor], requested_output_names=["ANSWER"])
def count(responses):
    return sum(len(response.output_tensors()) for response in responses)
`

describe.skipIf(python === undefined)("a stream of a model in Python that another one calls", () => {
  const run = async ({ infer }: Served, code: string) => {
    const { outputs, error } = await infer("bls", [text("IN", request + code)])
    return error ?? outputs?.[0]?.data[0]
  }

  it("waits for the code that reads it, and the code for the stream", async () => {
    const fixture = await models()
    const server = await serve(fixture)
    const gate = join(fixture.path, ".gate")
    const result = run(
      server,
      `responses = streams("execute 200").exec(decoupled=True)
while not os.path.exists(${JSON.stringify(gate)}):
    time.sleep(0.01)
return count(responses), count(responses)`,
    )
    // 16 that the code has not read, and 16 that the server has not taken, less those of which it has not told yet.
    await expect.poll(server.log).toContain("waits after 24")
    expect(await sentBeforeWait(server)).toBe(24)
    writeFileSync(gate, "")
    expect(await result).toBe("(200, 200)")
  })

  it("lets code call the model again before it reads, with one instance", async () => {
    const server = await serve(await models())
    const twice = `first, second = streams("execute 100").exec(decoupled=True), streams("execute 50").exec(decoupled=True)
return count(first), count(second)`
    expect(await run(server, twice)).toBe("(100, 50)")
    const nested = `return [count(streams("execute 50").exec(decoupled=True)) for _ in streams("execute 40").exec(decoupled=True)]`
    expect(await run(server, nested)).toBe(`[${Array.from({ length: 41 }, () => 50).join(", ")}]`)
  })

  it("runs to its end when the code drops its iterator", async () => {
    const server = await serve(await models())
    expect(await run(server, `streams("execute 100").exec(decoupled=True)\nreturn "dropped"`)).toBe("dropped")
    await expect.poll(server.log).toContain("ended after 100")
  })

  it("goes on when the code cancels it", async () => {
    const server = await serve(await models())
    const code = `responses = streams("execute 100").exec(decoupled=True)
responses.cancel()
return list(responses)[-1].has_error()`
    expect(await run(server, code)).toBe("True")
    await expect.poll(server.log).toContain("ended after 100")
  })

  it("goes on when the process of the code dies", async () => {
    const server = await serve(await models())
    const code = `responses = streams("execute 100").exec(decoupled=True)
os._exit(1)`
    expect(await run(server, code)).toContain("is not healthy")
    await expect.poll(server.log).toContain("ended after 100")
  })

  it("waits for a process that the code forks", async () => {
    const server = await serve(await models())
    const code = `pid = os.fork()
if pid == 0:
    os._exit(int(count(streams("execute 100").exec(decoupled=True)) != 100))
return os.waitpid(pid, 0)[1]`
    expect(await run(server, code)).toBe("0")
  })
})

const requests = async function* (...all: ReadonlyArray<InferRequest>) {
  yield* all
}
