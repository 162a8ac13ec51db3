/** The alerts of deploy: by promtool, and by a Prometheus that scrapes servers under load until each alert fires. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { request } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Effect, Layer } from "effect"
import { afterAll, expect, it } from "vitest"
import { authority } from "../fixtures/certificate.ts"
import { Prometheus } from "./Prometheus.ts"
import { chart, isInstalled, output } from "./Tools.ts"

const rules = join(chart, "files/alerts.yaml")
const text = readFileSync(rules, "utf8")
const names = [...text.matchAll(/- alert: (\w+)/g)].map(([, name = ""]) => name)
const folder = mkdtempSync(join(tmpdir(), "nereid-alerts-"))
afterAll(() => rmSync(folder, { recursive: true }))

const hasPromtool = isInstalled("promtool", "--version")
const hasPrometheus = isInstalled("prometheus", "--version")

it.skipIf(!hasPromtool)("are rules that promtool accepts", () => {
  expect(output("promtool", ["check", "rules", "--lint=all", "--lint-fatal", rules])).toContain("SUCCESS")
})

it.skipIf(!hasPromtool)("fire when they should, and not before", () => {
  const tests = readFileSync(join(import.meta.dirname, "alerts.test.yaml"), "utf8")
  for (const name of names) expect(tests).toContain(`alertname: ${name}\n        exp_alerts:`)
  const file = join(folder, "tests.yaml")
  writeFileSync(file, tests.replace("[NAME]", `[${rules}]`))
  expect(output("promtool", ["test", "rules", file])).toContain("SUCCESS")
})

class Slow extends Model.Service<Slow>()("slow", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { X: Tensor.scalar("INT32") },
  batching: { maxQueueSize: 8 },
}) {}

class Failing extends Model.Service<Failing>()("failing", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { X: Tensor.scalar("INT32") },
}) {}

const models = Layer.merge(
  Model.each(Slow, ({ X }) => Effect.delay(Effect.succeed({ X }), "100 millis")),
  Model.each(Failing, ({ X }) => (X === 0 ? Effect.fail("out of order") : Effect.succeed({ X }))),
)

it.skipIf(!hasPrometheus)(
  "fire in a Prometheus that scrapes servers under load, with their times in seconds for minutes",
  async () => {
    const certificates = authority()
    const { cert, key } = certificates.issue("localhost")
    const [certFile, keyFile] = [join(folder, "tls.crt"), join(folder, "tls.key")]
    writeFileSync(certFile, cert)
    writeFileSync(keyFile, key)
    const local = { host: "127.0.0.1", port: 0 }
    await using server = await Server.start([Slow, Failing], models, {
      http: local,
      grpc: local,
      metrics: local,
      tls: { grpc: { cert: certFile, key: keyFile } },
      maxInFlightSize: 2 ** 20,
    })

    // Only the times differ: [5m] is [5s], and a certificate may be valid for a thousand years.
    const scaled = text.replaceAll(/\b(\d+)m\b/g, "$1s").replace("14 * 86400", "365000 * 86400")
    expect(scaled).not.toBe(text)
    const addresses = [`127.0.0.1:${server.metrics.port}`, "127.0.0.1:1"]
    await using prometheus = await Prometheus.start(
      addresses.map((address) => ({ address })),
      scaled,
    )

    const over = new AbortController()
    const url = `http://127.0.0.1:${server.http.port}/v2/models`
    const body = (data: number) =>
      JSON.stringify({ inputs: [{ name: "X", datatype: "INT32", shape: [1], data: [data] }] })
    const infer = async (model: string, content: string) => {
      const response = await fetch(`${url}/${model}/infer`, { method: "POST", body: content })
      await response.arrayBuffer()
    }
    const pause = () => new Promise((resolve) => setTimeout(resolve, 100))
    const callers = [
      // Each waits for 8 others at most, and the rest is refused.
      ...Array.from({ length: 12 }, async () => {
        while (!over.signal.aborted) await Promise.all([infer("slow", body(1)), pause()])
      }),
      (async () => {
        while (!over.signal.aborted) await Promise.all([infer("failing", body(0)), infer("failing", body(1)), pause()])
      })(),
      (async () => {
        while (!over.signal.aborted) await Promise.all([refused(server.http.port), pause()])
      })(),
    ]
    const firing = async () => {
      const { alerts: all }: { alerts: ReadonlyArray<Alert> } = await prometheus.get("alerts")
      const alerts = all.filter(({ state }) => state === "firing")
      return [...new Set(alerts.map(({ labels }) => labels["alertname"] ?? ""))].toSorted()
    }
    try {
      await expect.poll(firing, { timeout: 60_000, interval: 500 }).toEqual(names.toSorted())
    } finally {
      over.abort()
      await Promise.all(callers)
    }
  },
  90_000,
)

interface Alert {
  readonly state: string
  readonly labels: { readonly [name: string]: string }
}

/** A body beyond the memory that the server may hold. */
const refused = (port: number) =>
  new Promise<void>((resolve) => {
    const call = request({ host: "127.0.0.1", port, path: "/v2/models/slow/infer", method: "POST" }, (response) => {
      response.resume()
      response.on("close", resolve)
    })
    call.on("error", () => resolve())
    call.end(Buffer.alloc(2 * 2 ** 20))
  })
