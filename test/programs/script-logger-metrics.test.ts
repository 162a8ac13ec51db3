/** The log and the metrics of scripts, on the server's thread and in worker threads, with `nereid serve` (C31, C39). */
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { Effect, Exit, Scope } from "effect"
import { expect, it, onTestFinished } from "vitest"
import { clients } from "../../packages/server/src/grpc/GrpcServer.fixture.ts"
import { repository as writeRepository } from "../fixtures/repository.ts"
import { nereid } from "../Program.ts"

const { logSettings } = GRPCInferenceService.method

const script = `export default {
  initialize: ({ logger, metrics, modelInstanceName }) => {
    logger.info("built " + modelInstanceName)
    return {
      logger,
      runs: metrics.counter("script_runs", { description: "Requests", labels: { kind: ["a", "b"] } }),
      last: metrics.gauge("script_last", { description: "Last input" }),
      sizes: metrics.histogram("script_sizes", { description: "Inputs", boundaries: [1, 10] }),
    }
  },
  execute: (requests, { logger, runs, last, sizes }) =>
    requests.map(({ id, inputs: { X } }) => {
      runs.add(2, { kind: "b" })
      last.set(X.data[0])
      sizes.observe(X.data[0])
      for (const level of ["verbose", "info", "warn", "error"]) logger[level](id + " " + level)
      return { Y: X }
    }),
}`

const config = (threads: boolean) => `
  input { name: "X" data_type: TYPE_FP32 dims: 1 }
  output { name: "Y" data_type: TYPE_FP32 dims: 1 }
  parameters { key: "worker_threads" value { string_value: "${threads}" } }`

const serve = async (threads: boolean) => {
  const scope = Scope.makeUnsafe()
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const fixture = await Effect.runPromise(Scope.provide(writeRepository, scope))
  fixture.write("m/1/model.js", script)
  fixture.write("m/config.pbtxt", config(threads))
  const ports = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"]
  const server = nereid("serve", ...ports, `--model-repository=${fixture.path}`)
  onTestFinished(() => server[Symbol.asyncDispose]())
  const port = async (name: string) => (await server.match(new RegExp(`${name} at .*:(\\d+)`)))[1]
  const [http, grpc, metrics] = await Promise.all(["HTTPService", "GRPCInferenceService", "Metrics Service"].map(port))
  const post = async (path: string, body: unknown) => {
    const response = await fetch(`http://127.0.0.1:${http}/v2/${path}`, { method: "POST", body: JSON.stringify(body) })
    expect(response.status, await response.text()).toBe(200)
  }
  /** Calls the script, and returns the levels that it has logged. */
  const levels = async (id: string, value: number) => {
    await post("models/m/infer", { id, inputs: [{ name: "X", datatype: "FP32", shape: [1], data: [value] }] })
    await server.match(new RegExp(`E.*${id} error`))
    return [...server.output.matchAll(new RegExp(`^([A-Z])\\d.*${id} (\\w+)`, "gm"))].map(([, mark, level]) => [
      mark,
      level,
    ])
  }
  const call = await Effect.runPromise(Scope.provide(clients["grpc-js"]({ port: Number(grpc) }), scope))
  const scrape = async () => (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text()
  return { server, post, levels, scrape, call }
}

it.each([
  ["on the server's thread", false],
  ["in worker threads", true],
])("a script %s logs by the settings of the server", async (_, threads) => {
  const { server, post, levels, call } = await serve(threads)
  await server.match(/I.*built m_0/)
  expect(await levels("first", 1)).toEqual([
    ["I", "info"],
    ["W", "warn"],
    ["E", "error"],
  ])
  await post("logging", { log_info: false, log_verbose_level: 1 })
  const verbose = await levels("second", 1)
  expect(verbose.map(([, level]) => level)).toEqual(["verbose", "warn", "error"])
  const off = { parameterChoice: { case: "boolParam", value: false } } as const
  const zero = { parameterChoice: { case: "uint32Param", value: 0 } } as const
  await Effect.runPromise(call(logSettings, { settings: { log_warning: off, log_verbose_level: zero } }))
  expect(await levels("third", 1)).toEqual([["E", "error"]])
})

it.each([
  ["on the server's thread", false],
  ["in worker threads", true],
])("a script %s has counters, gauges and histograms in /metrics", async (_, threads) => {
  const { levels, scrape } = await serve(threads)
  await levels("first", 5)
  await levels("second", 0.5)
  const lines = (await scrape()).split("\n").filter((line) => line.includes("script_"))
  expect(lines).toEqual(
    expect.arrayContaining([
      "# HELP script_runs Requests",
      "# TYPE script_runs counter",
      'script_runs{kind="a",model="m",version="1"} 0',
      'script_runs{kind="b",model="m",version="1"} 4',
      'script_last{model="m",version="1"} 0.5',
      'script_sizes_bucket{model="m",version="1",le="1"} 1',
      'script_sizes_bucket{model="m",version="1",le="10"} 2',
      'script_sizes_count{model="m",version="1"} 2',
    ]),
  )
})
