/**
 * The queries of autoscalers and of the dashboard, answered by a Prometheus that scrapes two servers as if they were
 * pods: those of the files of deploy, and the rule of the guide for prometheus-adapter.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { root } from "../Program.ts"
import { Prometheus } from "./Prometheus.ts"
import { chart, deploy, isInstalled } from "./Tools.ts"

class Same extends Model.Service<Same>()("same", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { X: Tensor.scalar("INT32") },
  maxBatchSize: 4,
}) {}

const start = () => {
  const local = { host: "127.0.0.1", port: 0 }
  const models = Model.each(Same, ({ X }) => (X < 0 ? Effect.fail("negative") : Effect.succeed({ X })))
  return Server.start([Same], models, { http: local, grpc: false, metrics: local })
}

const hasPrometheus = isInstalled("prometheus", "--version")

describe.skipIf(!hasPrometheus)("a Prometheus answers", () => {
  let servers: ReadonlyArray<Awaited<ReturnType<typeof start>>> = []
  let prometheus: Prometheus

  beforeAll(async () => {
    servers = await Promise.all([start(), start()])
    const targets = servers.map(({ metrics }, index) => ({
      address: `127.0.0.1:${metrics.port}`,
      labels: { namespace: "default", service: "nereid-pods", pod: `flowers-predictor-${index}` },
    }))
    prometheus = await Prometheus.start(targets)
    const infer = async (server: number, x: number) => {
      const inputs = [{ name: "X", datatype: "INT32", shape: [1, 1], data: [x] }]
      const url = `http://127.0.0.1:${servers[server]?.http.port}/v2/models/same/infer`
      await (await fetch(url, { method: "POST", body: JSON.stringify({ inputs }) })).arrayBuffer()
    }
    // Counters need requests between two scrapes, so that they have a rate.
    const hasRates = async () => {
      await Promise.all([infer(0, 1), infer(1, 1), infer(0, -1), infer(1, -1)])
      return (await prometheus.query("rate(nv_inference_request_failure[5s]) > 0")).length
    }
    await vi.waitUntil(async () => (await hasRates()) >= 2, { timeout: 30_000, interval: 100 })
  })

  afterAll(async () => {
    await prometheus?.[Symbol.asyncDispose]()
    await Promise.all(servers.map((server) => server.stop()))
  })

  it("the query of KEDA, by one element that is the sum of the pods", async () => {
    const text = readFileSync(join(deploy, "kustomize/components/keda/autoscaling.yaml"), "utf8")
    const [, query = ""] = /^ +query: (.*)$/m.exec(text) ?? []
    const [sum, ...more] = await prometheus.query(query)
    expect(more).toEqual([])
    expect(sum?.metric).toEqual({})
    expect(sum?.value).toBeGreaterThanOrEqual(0)
    expect(await prometheus.query(query.replace("nereid-pods", "other-pods"))).toEqual([])
  })

  it("the query of the InferenceService, by one element", async () => {
    const text = readFileSync(join(deploy, "kserve/inferenceservice.yaml"), "utf8")
    const [, query = ""] = /^ +query: (.*)$/m.exec(text) ?? []
    expect(await prometheus.query(query)).toHaveLength(1)
  })

  it("the rule for prometheus-adapter, by one element for each pod that it asks for", async () => {
    const guide = readFileSync(join(root, "docs/guides/kubernetes.md"), "utf8")
    const field = (name: string) => new RegExp(`^ +(?:- )?${name}: (.*)$`, "m").exec(guide)?.[1] ?? ""
    const series: ReadonlyArray<unknown> = await prometheus.get("series", { "match[]": field("seriesQuery") })
    expect(series).toHaveLength(2)
    // As the adapter fills in the template.
    const filled = field("metricsQuery")
      .replace("<<.Series>>", "nereid_saturation")
      .replace("<<.LabelMatchers>>", 'namespace="default",pod=~"flowers-predictor-0|flowers-predictor-1|another"')
      .replace("<<.GroupBy>>", "pod")
    expect(filled).not.toContain("<<")
    const found = await prometheus.query(filled)
    expect(found.map(({ metric }) => metric["pod"]).toSorted()).toEqual(["flowers-predictor-0", "flowers-predictor-1"])
    expect(field("resources")).toBe("{ overrides: { namespace: { resource: namespace }, pod: { resource: pod } } }")
  })

  it("each panel of the dashboard, most of them with data", async () => {
    const { panels } = JSON.parse(readFileSync(join(chart, "files/dashboard.json"), "utf8"))
    const queries: ReadonlyArray<string> = panels.flatMap(({ targets }: { targets: ReadonlyArray<{ expr: string }> }) =>
      targets.map(({ expr }) => expr),
    )
    const empty: Array<string> = []
    for (const query of queries) {
      const filled = query.replaceAll(/\$(instance|model)/g, ".*").replaceAll("$__rate_interval", "5s")
      expect(filled).not.toContain("$")
      if ((await prometheus.query(filled)).length === 0) empty.push(query)
    }
    // No limit has refused anything.
    expect(empty).toEqual(queries.filter((query) => query.includes("nereid_limit_actions_total")))
  })
})
