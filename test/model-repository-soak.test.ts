/**
 * A repository under constant change and constant traffic: models are reloaded, loaded and unloaded while 16 callers ask one
 * of them without a pause. No request fails, and no thread, file or memory is left behind.
 */
import { Effect, Exit, Scope } from "effect"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { plus, repository } from "./fixtures/repository.ts"
import { nereid } from "./Program.ts"

const anyPort = ["--http-port=0", "--allow-grpc=false", "--allow-metrics=false"]
const one = "max_batch_size: 8 dynamic_batching {} instance_group { count: 1 kind: KIND_CPU }"
const [reloads, cycles, callers] = [200, 50, 16]

/** What a process holds, where the system tells. */
const held = (pid: number) => {
  const status = readFileSync(`/proc/${pid}/status`, "utf8")
  const number = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1])
  return { threads: number("Threads"), files: readdirSync(`/proc/${pid}/fd`).length, kilobytes: number("VmRSS") }
}

it.skipIf(!existsSync("/proc/self/status"))(
  `${reloads} reloads and ${cycles} loads and unloads under traffic leave nothing behind`,
  // Once more, as the collector of garbage is free to be late.
  { timeout: 120_000, retry: 1 },
  async () => {
    const scope = Scope.makeUnsafe()
    const models = await Effect.runPromise(Scope.provide(repository, scope))
    models.adding("steady", 1, 1, one)
    models.adding("cycled", 1, 1, one)
    const explicit = [`--model-repository=${models.path}`, "--model-control-mode=explicit", "--load-model=steady"]
    await using server = nereid("serve", ...anyPort, ...explicit)
    const [, port] = await server.match(/HTTPService at .*:(\d+)/)
    const post = async (path: string, body = "") => {
      const response = await fetch(`http://127.0.0.1:${port}/v2/${path}`, { method: "POST", body })
      const text = await response.text()
      if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text}`)
      return text
    }

    const changing = new AbortController()
    let asked = 0
    const document = { inputs: [{ name: "X", datatype: "FP32", shape: [1, 1], data: [0] }] }
    const request = JSON.stringify(document)
    const caller = async () => {
      while (!changing.signal.aborted) {
        const { outputs } = JSON.parse(await post("models/steady/infer", request))
        expect([1, 2]).toContain(outputs[0].data[0])
        asked += 1
      }
    }
    const traffic = Promise.all(Array.from({ length: callers }, caller))
    // A failure is to end the test at once.
    const change = async () => {
      const reload = async (times: number) => {
        for (let time = 0; time < times; time++) {
          models.write("steady/1/model.onnx", plus(1 + (time % 2)))
          await post("repository/models/steady/load")
        }
      }
      const cycle = async (times: number) => {
        for (let time = 0; time < times; time++) {
          await post("repository/models/cycled/load")
          await post("repository/models/cycled/unload")
        }
      }
      await Promise.all([reload(reloads / 2), cycle(cycles / 2)])
      // By now V8's heap is as large as this traffic makes it, with changes or without.
      const before = held(server.pid)
      await Promise.all([reload(reloads / 2), cycle(cycles / 2)])
      changing.abort()
      return before
    }
    const [before] = await Promise.all([change(), traffic])
    await post("repository/models/cycled/unload")
    await expect.poll(() => held(server.pid).threads, { timeout: 10_000 }).toBeLessThanOrEqual(before.threads)
    const after = held(server.pid)
    expect(after.files, "files").toBeLessThanOrEqual(before.files + callers)
    expect(after.kilobytes, "memory").toBeLessThan(before.kilobytes * 1.2)
    expect(asked).toBeGreaterThan(reloads)
    await Effect.runPromise(Scope.close(scope, Exit.void))
  },
)
