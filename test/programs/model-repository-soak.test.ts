/**
 * A repository under constant change and load, over both transports. Models are reloaded, loaded, regrouped and
 * unloaded, while 16 callers continuously call one of them over HTTP, and ensembles of them over gRPC.
 *
 * No request of a permanent model fails; requests of other models fail only because the model is not loaded. Compared
 * with the process before the first change, after as much load, no thread, file or memory leaks.
 */
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { Effect, Exit, Scope } from "effect"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { clients } from "../../packages/server/src/grpc/GrpcServer.fixture.ts"
import { plus, repository } from "../fixtures/repository.ts"
import { command, Program } from "../Program.ts"

const anyPort = ["--http-port=0", "--grpc-port=0", "--allow-metrics=false"]
const { modelInfer, repositoryModelLoad, repositoryModelUnload } = GRPCInferenceService.method
const one = "max_batch_size: 8 dynamic_batching {} instance_group { count: 1 kind: KIND_CPU }"
const two = JSON.stringify({
  max_batch_size: 8,
  dynamic_batching: {},
  instance_group: [{ count: 2, kind: "KIND_CPU" }],
})
/** X → Y by the one and then the other. */
const ensemble = (first: string, second: string) => `platform: "ensemble" max_batch_size: 8
  input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_FP32 dims: 1 }
  ensemble_scheduling {
    step { model_name: "${first}" model_version: -1 input_map { key: "X" value: "X" } output_map { key: "Y" value: "T" } }
    step { model_name: "${second}" model_version: -1 input_map { key: "X" value: "T" } output_map { key: "Y" value: "Y" } }
  }`
const [reloads, cycles, warmUp] = [200, 50, 8000]

/**
 * Settings that keep caches of the process from hiding leaks. The C library keeps an arena for each thread that has
 * loaded a session, up to eight per core. V8 keeps the pages of ended heaps for some seconds, and delays garbage
 * collection. So the process has two arenas, no page pool, and a collection before each measurement.
 */
const environment = { MALLOC_ARENA_MAX: "2" }
const node = ["--no-memory-pool", "--expose-gc", "--import", "./test/fixtures/programs/collecting.ts"]

/** Threads and open files of a process, from Linux's /proc. */
const held = ({ pid }: Program) => {
  const status = readFileSync(`/proc/${pid}/status`, "utf8")
  const threads = Number(/Threads:\s+(\d+)/.exec(status)?.[1])
  return { threads, files: readdirSync(`/proc/${pid}/fd`).length }
}

/** Bytes of a process without its garbage. */
const memory = async (server: Program) => {
  const times = server.output.split("collected").length
  server.signal("SIGUSR2")
  const [, resident, heap] = await server.match(new RegExp(`collected ${times}: (\\d+) (\\d+) \\d+\n`))
  return { resident: Number(resident), heap: Number(heap) }
}

it.skipIf(!existsSync("/proc/self/status"))(
  `${reloads} reloads and ${cycles} loads and unloads under traffic leave nothing behind`,
  { timeout: 180_000 },
  async () => {
    const scope = Scope.makeUnsafe()
    const models = await Effect.runPromise(Scope.provide(repository, scope))
    models.adding("steady", 1, 1, one)
    models.adding("other", 1, 10, one)
    models.adding("cycled", 1, 100, one)
    // One is always loaded; the other is loaded and unloaded with the third model.
    models.write("pair/config.pbtxt", ensemble("steady", "other"))
    models.write("passing/config.pbtxt", ensemble("steady", "cycled"))
    for (const name of ["pair", "passing"]) models.write(`${name}/1/.gitkeep`, "")
    const explicit = [`--model-repository=${models.path}`, "--model-control-mode=explicit", "--load-model=pair"]
    await using server = new Program([...node, command, "serve", ...anyPort, ...explicit], environment)
    const [, port] = await server.match(/HTTPService at .*:(\d+)/)
    const [, grpc] = await server.match(/GRPCInferenceService at .*:(\d+)/)
    const post = async (path: string, body = "") => {
      const response = await fetch(`http://127.0.0.1:${port}/v2/${path}`, { method: "POST", body })
      const text = await response.text()
      if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text}`)
      return text
    }
    const call = await Effect.runPromise(Scope.provide(clients["grpc-js"]({ port: Number(grpc) }), scope))
    const done = async (changed: ReturnType<typeof call>) => {
      const outcome = await Effect.runPromise(changed)
      if ("message" in outcome) throw new Error(outcome.message)
    }
    const load = (modelName: string) => done(call(repositoryModelLoad, { modelName }))
    const dependents = { unload_dependents: { parameterChoice: { case: "boolParam" as const, value: true } } }
    const unload = (modelName: string) => done(call(repositoryModelUnload, { modelName, parameters: dependents }))

    const requestCounts = { steady: 0, pair: 0, passing: 0, absent: 0 }
    const document = { inputs: [{ name: "X", datatype: "FP32", shape: [1, 1], data: [0] }] }
    const request = JSON.stringify(document)
    const inferSteady = async () => {
      const { outputs } = JSON.parse(await post("models/steady/infer", request))
      expect([1, 2]).toContain(outputs[0].data[0])
      requestCounts.steady += 1
    }
    const infer = async (modelName: string) => {
      const inputs = [{ name: "X", datatype: "FP32", shape: [1n, 1n] }]
      const response = await Effect.runPromise(
        call(modelInfer, { modelName, inputs, rawInputContents: [new Uint8Array(4)] }),
      )
      if ("message" in response) return response
      const [Y = new Uint8Array()] = response.response.rawOutputContents
      return new DataView(Y.buffer, Y.byteOffset).getFloat32(0, true)
    }
    const inferPair = async () => {
      expect([11, 12, 21, 22]).toContain(await infer("pair"))
      requestCounts.pair += 1
    }
    const inferPassing = async () => {
      const response = await infer("passing")
      if (typeof response === "number") {
        expect([101, 102]).toContain(response)
        requestCounts.passing += 1
      } else {
        // NOT_FOUND or UNAVAILABLE: it, or what it is made of, is not there, and no more than that.
        expect([5, 14]).toContain(response.code)
        expect(response.message).toMatch(/^(in ensemble 'passing', )?Request for unknown model: '(passing|cycled)'/)
        requestCounts.absent += 1
      }
    }
    /** All callers send requests continuously until `work` ends. A failure of either ends the test. */
    const underTraffic = async (work: () => Promise<unknown>) => {
      const over = new AbortController()
      const caller = async (send: () => Promise<void>) => {
        while (!over.signal.aborted) await send()
      }
      const callers = [...Array(8).fill(inferSteady), ...Array(4).fill(inferPair), ...Array(4).fill(inferPassing)]
      await Promise.all([work(), ...callers.map(caller)].map((one) => one.finally(() => over.abort())))
    }
    const reload = async () => {
      for (let time = 0; time < reloads; time++) {
        const name = time % 4 === 3 ? "other" : "steady"
        models.write(`${name}/1/model.onnx`, plus((name === "steady" ? 1 : 10) * (1 + (time % 8 < 4 ? 1 : 0))))
        if (time % 2 === 0) await post(`repository/models/${name}/load`)
        else await load(name)
      }
    }
    const cycle = async () => {
      for (let time = 0; time < cycles; time++) {
        await post("repository/models/passing/load")
        await post("repository/models/cycled/load", JSON.stringify({ parameters: { config: two } }))
        if (time % 2 === 0) await post("repository/models/cycled/unload")
        // Both, as well as what it has brought.
        await unload("passing")
        await unload("cycled")
      }
    }
    const count = () => requestCounts.steady + requestCounts.pair

    await underTraffic(() => expect.poll(count, { timeout: 60_000 }).toBeGreaterThan(warmUp))
    // The threads that read files end a minute after the last load, or once a server has loaded its first models.
    await load("passing")
    await unload("passing")
    await unload("cycled")
    const before = { ...held(server), ...(await memory(server)) }
    const calls = count()
    await underTraffic(() => Promise.all([reload(), cycle()]))
    expect(count()).toBeGreaterThan(calls + reloads)
    expect([requestCounts.passing > 0, requestCounts.absent > 0]).toEqual([true, true])
    for (const name of ["pair", "steady", "other"]) await post(`repository/models/${name}/unload`)
    // Threads end, and connections and pages are given up, a little later.
    await expect.poll(() => held(server).threads, { timeout: 20_000 }).toBeLessThan(before.threads)
    await expect.poll(() => held(server).files, { timeout: 20_000 }).toBeLessThanOrEqual(before.files)
    const later = { timeout: 20_000, interval: 1000 }
    await expect.poll(async () => (await memory(server)).heap, later).toBeLessThan(before.heap * 1.2)
    await expect.poll(async () => (await memory(server)).resident, later).toBeLessThan(before.resident * 1.2)
    await Effect.runPromise(Scope.close(scope, Exit.void))
  },
)
