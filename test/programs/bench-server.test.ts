/**
 * Nereid's own server under the load of @nereid/bench: every protocol, small and large tensors, all replies as
 * expected.
 */
import * as Benchmark from "@nereid/bench/internal/benchmark/Benchmark"
import * as ServerUrl from "@nereid/core/internal/wire/ServerUrl"
import type { Protocol } from "@nereid/bench/internal/target/ModelClient"
import * as Summary from "@nereid/bench/internal/report/Summary"
import * as Sweep from "@nereid/bench/internal/load/Sweep"
import { Result } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { nereid, type Program } from "../Program.ts"

let server: Program
let ports: { readonly http: string; readonly grpc: string }

beforeAll(async () => {
  const flags = ["--http-port=0", "--grpc-port=0", "--allow-metrics=0"]
  server = nereid("serve", "test/fixtures/modules/bench.ts", ...flags)
  const [, grpc = ""] = await server.match(/GRPCInferenceService at .*:(\d+)/)
  const [, http = ""] = await server.match(/HTTPService at .*:(\d+)/)
  ports = { http, grpc }
})

afterAll(() => server[Symbol.asyncDispose]())

const load = async (protocol: Protocol, extent: number, requests: number) => {
  const transport = protocol.startsWith("grpc") ? "grpc" : "http"
  const benchmark = await Benchmark.prepare({
    endpoint: Result.getOrThrow(ServerUrl.parse(`localhost:${ports[transport]}`, transport)),
    tls: {},
    protocol,
    model: { name: "sum", version: "" },
    headers: {},
    parameters: {},
    inputs: {
      synthetic: {
        batchSize: 2,
        shapes: new Map([["IN", [extent]]]),
        values: "random",
        text: undefined,
        textLength: 0,
        variants: 2,
      },
    },
    seed: 1,
    checkLengths: true,
  })
  try {
    const results: Array<Sweep.LevelResult> = []
    for await (const result of Sweep.run({
      target: benchmark.target,
      statistics: benchmark.statistics,
      levels: [{ concurrency: 1 }, { concurrency: 8 }],
      rounds: 2,
      extent: { requests },
      warmUp: undefined,
      connections: 2,
      maxOutstanding: 8,
      patience: 20_000,
      seed: 1,
      clock: { now: () => performance.now(), wake: () => {}, close: () => {} },
    })) {
      results.push(result)
    }
    return { benchmark, summaries: results.map((result) => Summary.make(result, [50])) }
  } finally {
    benchmark.close()
  }
}

describe.each(["grpc", "grpc-stream", "http", "http-json"] as const)("%s", (protocol) => {
  it("many small requests", async () => {
    const { benchmark, summaries } = await load(protocol, 5, 100)
    expect(benchmark).toMatchObject({ batchSize: 2, requests: 2, remarks: [] })
    expect(benchmark.responses).toMatchObject([{ outputs: [{ name: "OUT", datatype: "FP32", shape: [2, 1] }] }])
    expect(summaries).toMatchObject([
      { requests: 200, errors: 0, server: { requests: 200, meanBatch: 2 } },
      { requests: 200, errors: 0, server: { requests: 200 } },
    ])
  })

  it("some of several megabytes", async () => {
    const { summaries } = await load(protocol, protocol === "http-json" ? 100_000 : 400_000, 4)
    expect(summaries).toMatchObject([
      { requests: 8, errors: 0 },
      { requests: 8, errors: 0 },
    ])
  })
})
