/** Code of models in Python that reads the responses of another model slowly. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { python } from "../fixtures/python.ts"
import { type Served, serve, text } from "./PythonRepository.ts"
import { models, sentBeforeWait } from "./Streams.ts"

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
    const pool = `import concurrent.futures
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    both = list(pool.map(lambda _: streams("execute 100").exec(decoupled=True), range(2)))
return [count(responses) for responses in both]`
    expect(await run(server, pool)).toBe("[100, 100]")
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
