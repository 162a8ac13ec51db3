/**
 * A repository under constant change and constant traffic: models are reloaded, loaded, given another instance and unloaded
 * while 16 callers ask one of them without a pause. No request fails; and against what the process held after as much traffic
 * before the first change, no thread, no file and no memory is left behind.
 */
import { Effect, Exit, Scope } from "effect"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { plus, repository } from "./fixtures/repository.ts"
import { command, Program } from "./Program.ts"

const anyPort = ["--http-port=0", "--allow-grpc=false", "--allow-metrics=false"]
const one = "max_batch_size: 8 dynamic_batching {} instance_group { count: 1 kind: KIND_CPU }"
const two = JSON.stringify({
  max_batch_size: 8,
  dynamic_batching: {},
  instance_group: [{ count: 2, kind: "KIND_CPU" }],
})
const [reloads, cycles, callers, warmUp] = [200, 50, 16, 8000]

/**
 * What a process keeps for itself hides what is left behind: the C library an arena for each thread that has loaded a session, up
 * to eight for each core, none of which it gives back; V8 the pages of heaps that have ended, for some seconds, and garbage
 * until it comes to it. So there are two arenas and no such pages here, and garbage is collected before anything is measured.
 */
const environment = { MALLOC_ARENA_MAX: "2" }
const node = ["--no-memory-pool", "--expose-gc", "--import", "./test/fixtures/programs/collecting.ts"]

/** What a process holds, where the system tells. */
const held = ({ pid }: Program) => {
  const status = readFileSync(`/proc/${pid}/status`, "utf8")
  const threads = Number(/Threads:\s+(\d+)/.exec(status)?.[1])
  return { threads, files: readdirSync(`/proc/${pid}/fd`).length }
}

/** Bytes of a process without its garbage. */
const memory = async (server: Program) => {
  const times = server.output.split("collected").length
  server.signal("SIGUSR2")
  const [, resident, heap] = await server.match(new RegExp(`collected ${times}: (\\d+) (\\d+)\n`))
  return { resident: Number(resident), heap: Number(heap) }
}

it.skipIf(!existsSync("/proc/self/status"))(
  `${reloads} reloads and ${cycles} loads and unloads under traffic leave nothing behind`,
  { timeout: 180_000 },
  async () => {
    const scope = Scope.makeUnsafe()
    const models = await Effect.runPromise(Scope.provide(repository, scope))
    models.adding("steady", 1, 1, one)
    models.adding("cycled", 1, 1, one)
    const explicit = [`--model-repository=${models.path}`, "--model-control-mode=explicit", "--load-model=steady"]
    await using server = new Program([...node, command, "serve", ...anyPort, ...explicit], environment)
    const [, port] = await server.match(/HTTPService at .*:(\d+)/)
    const post = async (path: string, body = "") => {
      const response = await fetch(`http://127.0.0.1:${port}/v2/${path}`, { method: "POST", body })
      const text = await response.text()
      if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text}`)
      return text
    }

    let asked = 0
    const document = { inputs: [{ name: "X", datatype: "FP32", shape: [1, 1], data: [0] }] }
    const request = JSON.stringify(document)
    /** All callers ask, without a pause, until `work` has ended. A failure of either is to end the test at once. */
    const underTraffic = async (work: () => Promise<unknown>) => {
      const over = new AbortController()
      const caller = async () => {
        while (!over.signal.aborted) {
          const { outputs } = JSON.parse(await post("models/steady/infer", request))
          expect([1, 2]).toContain(outputs[0].data[0])
          asked += 1
        }
      }
      const all = [work(), ...Array.from({ length: callers }, caller)]
      await Promise.all(all.map((one) => one.finally(() => over.abort())))
    }
    const reload = async () => {
      for (let time = 0; time < reloads; time++) {
        models.write("steady/1/model.onnx", plus(1 + (time % 2)))
        await post("repository/models/steady/load")
      }
    }
    const cycle = async () => {
      for (let time = 0; time < cycles; time++) {
        await post("repository/models/cycled/load")
        await post("repository/models/cycled/load", JSON.stringify({ parameters: { config: two } }))
        await post("repository/models/cycled/unload")
      }
    }

    await underTraffic(() => expect.poll(() => asked, { timeout: 60_000 }).toBeGreaterThan(warmUp))
    const before = { ...held(server), ...(await memory(server)) }
    await underTraffic(() => Promise.all([reload(), cycle()]))
    expect(asked).toBeGreaterThan(warmUp + reloads)
    await post("repository/models/steady/unload")
    // Threads end, and connections and pages are given up, a little later.
    await expect.poll(() => held(server).threads, { timeout: 20_000 }).toBeLessThan(before.threads)
    await expect.poll(() => held(server).files, { timeout: 20_000 }).toBeLessThanOrEqual(before.files)
    const later = { timeout: 20_000, interval: 1000 }
    await expect.poll(async () => (await memory(server)).heap, later).toBeLessThan(before.heap * 1.2)
    await expect.poll(async () => (await memory(server)).resident, later).toBeLessThan(before.resident * 1.2)
    await Effect.runPromise(Scope.close(scope, Exit.void))
  },
)
