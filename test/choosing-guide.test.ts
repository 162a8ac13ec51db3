/** The layers of the guide on choosing: each provides the same contract, so each gives the same response. */
import { writeFileSync } from "node:fs"
import { Server } from "@nereid/server"
import { afterAll, beforeAll, expect, it, vi } from "vitest"
import { model, node, value } from "./fixtures/onnx.ts"
import { python } from "./fixtures/python.ts"
import { Guide } from "./Guide.ts"

const guide = new Guide("docs/guides/choosing.md")
afterAll(() => guide[Symbol.dispose]())

beforeAll(() => {
  const bytes = model({
    inputs: [value("x", "FP32", ["batch", 2])],
    outputs: [value("norm", "FP32", ["batch", 1])],
    nodes: [node("ReduceL2", ["x"], ["norm"], { axes: [1], keepdims: 1 })],
  })
  writeFileSync(guide.file("length.onnx"), bytes)
})

beforeAll(() => {
  if (python !== undefined) vi.stubEnv("NEREID_PYTHON", python)
})
afterAll(() => vi.unstubAllEnvs())

const ports = { http: 0, grpc: false, metrics: false } as const

const infer = async (port: number, rows: number, parameters: object = {}) => {
  const inputs = [
    { name: "x", datatype: "FP32", shape: [rows, 2], data: Array.from({ length: rows }, () => [3, 4]).flat() },
  ]
  const body = JSON.stringify({ inputs, parameters })
  const response = await fetch(`http://localhost:${port}/v2/models/length/infer`, { method: "POST", body })
  const answer: { readonly outputs?: unknown; readonly error?: string } = JSON.parse(await response.text())
  return answer
}

const layers = ["each", "batch", "requests", "onnx", "worker", ...(python === undefined ? [] : ["python"])]

it.each(layers)("%s.ts gives the norms of its rows", async (name) => {
  const { Length } = await import(guide.file("contract.ts"))
  const { LengthLive } = await import(guide.file(`${name}.ts`))
  await using server = await Server.start([Length], LengthLive, ports)
  for (const rows of [1, 3]) {
    const { outputs } = await infer(server.http.port, rows)
    expect(outputs).toEqual([{ name: "norm", datatype: "FP32", shape: [rows, 1], data: Array(rows).fill(5) }])
  }
})

it("requests.ts answers by the parameters of each request, and refuses one alone", async () => {
  const { Length } = await import(guide.file("contract.ts"))
  const { LengthLive } = await import(guide.file("requests.ts"))
  await using server = await Server.start([Length], LengthLive, ports)
  const { port } = server.http
  expect(await Promise.all([infer(port, 1, { scale: 2.5 }), infer(port, 1, { scale: "x" })])).toEqual([
    expect.objectContaining({ outputs: [expect.objectContaining({ data: [12.5] })] }),
    { error: expect.stringContaining("scale is not a number") },
  ])
})

it("stream.ts counts down", async () => {
  const { Countdown } = await import(guide.file("contract.ts"))
  const { CountdownLive } = await import(guide.file("stream.ts"))
  await using server = await Server.start([Countdown], CountdownLive, ports)
  const url = `http://localhost:${server.http.port}/v2/models/countdown/generate_stream`
  const response = await fetch(url, { method: "POST", body: JSON.stringify({ FROM: 3 }) })
  const numbers = [...(await response.text()).matchAll(/"NUMBER":(\d+)/g)].map(([, number]) => Number(number))
  expect(numbers).toEqual([3, 2, 1])
})

it("they compile", () => guide.compile(), 60_000)
