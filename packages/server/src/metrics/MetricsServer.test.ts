import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Model, Tensor } from "@nereid/core"
import * as Gateway from "../gateway/Gateway.ts"
import { converse, exchange, serve } from "../port/RawHttp.fixture.ts"
import * as MetricsServer from "./MetricsServer.ts"

class Double extends Model.Service<Double>()('a "double"\\', {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { Y: Tensor.scalar("INT32") },
  maxBatchSize: 4,
}) {}

const DoubleLive = Model.each(Double, ({ X }) => Effect.succeed({ Y: X * 2 }))

const get = (port: number, path: string, method = "GET") =>
  Effect.promise(async () => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method })
    return { status: response.status, type: response.headers.get("content-type"), text: await response.text() }
  })

describe("metrics", () => {
  it.live("counts of every model, all reasons of failure from the start", () =>
    Effect.gen(function* () {
      const { model, infer } = yield* Double
      const gateway = Gateway.make(ModelStore.of([model]), { id: "nereid", version: "0" })
      const { port } = yield* MetricsServer.make(gateway, { host: "127.0.0.1", port: 0 })
      yield* infer({ X: 4 })
      yield* infer({ X: 5 })
      model.description.statistics.failed("CANCELED", 10)
      const { status, type, text } = yield* get(port, "/metrics")
      assert.deepStrictEqual([status, type], [200, "text/plain; charset=utf-8"])
      const lines = text.trimEnd().split("\n")
      const name = String.raw`model="a \"double\"\\"`
      for (const line of [
        "# TYPE nv_inference_request_success counter",
        `nv_inference_request_success{${name},version="1"} 2`,
        "# TYPE nv_inference_request_failure counter",
        `nv_inference_request_failure{${name},reason="REJECTED",version="1"} 0`,
        `nv_inference_request_failure{${name},reason="CANCELED",version="1"} 1`,
        `nv_inference_request_failure{${name},reason="BACKEND",version="1"} 0`,
        `nv_inference_request_failure{${name},reason="OTHER",version="1"} 0`,
        `nv_inference_count{${name},version="1"} 2`,
        `nv_inference_exec_count{${name},version="1"} 2`,
        "# TYPE nv_inference_pending_request_count gauge",
        `nv_inference_pending_request_count{${name},version="1"} 0`,
      ]) {
        assert.include(lines, line)
      }
      for (const part of ["request", "queue", "compute_input", "compute_infer", "compute_output"]) {
        const family = `nv_inference_${part}_duration_us`
        assert.match(text, new RegExp(`# HELP ${family} .+\n# TYPE ${family} counter\n${family}\\{.*\\} [0-9]+\n`))
      }
    }).pipe(Effect.provide(DoubleLive)),
  )

  it.live("nothing but /metrics", () =>
    Effect.gen(function* () {
      const { model } = yield* Double
      const gateway = Gateway.make(ModelStore.of([model]), { id: "nereid", version: "0" })
      const { port } = yield* MetricsServer.make(gateway, { host: "127.0.0.1", port: 0 })
      assert.strictEqual((yield* get(port, "/metrics/")).status, 200)
      assert.strictEqual((yield* get(port, "/metrics", "POST")).status, 405)
      for (const path of ["/", "/metric", "/v2/health/live"]) {
        const { status, text } = yield* get(port, path)
        assert.deepStrictEqual([status, text], [404, '{"error":"Not Found"}'], path)
      }
    }).pipe(Effect.provide(DoubleLive)),
  )

  const scrape = (port: number) => exchange(port, "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")

  /** Of all servers of the process. */
  const connectionsRefused = (port: number) =>
    Effect.map(scrape(port), (text) =>
      Number(/^nereid_limit_actions_total\{limit="connections"\} (\d+)$/m.exec(text)?.[1] ?? 0),
    )

  it.live("can be read while the other ports have all of their connections", () =>
    Effect.gen(function* () {
      const server = yield* serve({ maxConnections: 1 })
      const before = yield* connectionsRefused(server.metrics)
      const request = "GET /v2/health/live HTTP/1.1\r\nhost: x\r\n\r\n"
      for (const port of [server.http, server.grpc, server.port]) {
        const { until } = yield* converse(port, request)
        yield* until(/^HTTP\/1\.1 /)
        assert.strictEqual(yield* exchange(port, request), "")
      }
      for (let count = 0; count < 3; count++) assert.match(yield* scrape(server.metrics), /^HTTP\/1\.1 200 OK\r\n/)
      assert.strictEqual((yield* connectionsRefused(server.metrics)) - before, 3)
    }),
  )

  it.live("their port has 256 connections at most", () =>
    Effect.gen(function* () {
      const { metrics } = yield* serve()
      const request = "GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n"
      const open = yield* Effect.forEach(
        Array.from({ length: 256 }),
        () => Effect.tap(converse(metrics, request), ({ until }) => until(/200 OK/)),
        { concurrency: 16 },
      )
      assert.strictEqual(yield* exchange(metrics, request), "")
      open[0]?.socket.destroy()
      assert.match(yield* Effect.repeat(scrape(metrics), { while: (text) => text === "" }), /200 OK/)
    }),
  )
})
