/** `nereid bench` as a user meets it, against `nereid serve`: the table, the files, the exits. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { authority } from "../fixtures/certificate.ts"
import { nereid, type Program } from "../Program.ts"

const module = "test/fixtures/modules/bench.ts"

let server: Program
let http = ""
let grpc = ""
let folder = ""

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "nereid-bench-"))
  server = nereid("serve", module, "--http-port=0", "--grpc-port=0", "--allow-metrics=0")
  grpc = `localhost:${(await server.match(/GRPCInferenceService at .*:(\d+)/))[1]}`
  http = `localhost:${(await server.match(/HTTPService at .*:(\d+)/))[1]}`
})

afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})

/** Few requests, and no waiting. */
const short = ["--request-count=40", "--rounds=2", "--warm-up=0"]

const bench = (...flags: ReadonlyArray<string>) => nereid("bench", ...flags, ...short).ended

/** The lines of the table, as their cells. */
const rows = (output: string) => {
  const [head = "", , ...lines] = output
    .split("\n")
    .slice(output.split("\n").findIndex((line) => / p50 ms /.test(line)))
  const titles = head.trim().split(/ {2,}/)
  return lines
    .filter((line) => /^ *\d[\d.]*(?: +[\d.–]+)+$/.test(line))
    .map((line) =>
      Object.fromEntries(
        line
          .trim()
          .split(/ +/)
          .map((cell, index) => [titles[index], cell]),
      ),
    )
}

it("a line for each level, with what the server has counted", async () => {
  const flags = ["-m", "sum", "-u", grpc, "-i", "grpc", "--concurrency=1,8", "-b", "2", "--shape=IN:5"]
  const { code, output } = await bench(...flags)
  expect(output).toMatch(
    /^sum over gRPC at localhost:\d+\nrequest: {2}IN FP32\[2,5\]; 40 bytes\nresponse: OUT FP32\[2,1\]; 8 bytes\n/,
  )
  expect(rows(output)).toMatchObject([
    { concurrency: "1", errors: "0", batch: "2.0" },
    { concurrency: "8", errors: "0" },
  ])
  expect(code).toBe(0)
})

it("calls a decoupled model over streams", async () => {
  const { code, output } = await bench("-m", "count", "-u", grpc, "-i", "grpc", "--streaming", "--concurrency=4")
  expect(output).toMatch(/^response: OUT INT32\[1\]; 4 bytes, 4 responses$/m)
  expect(rows(output)).toMatchObject([{ concurrency: "4", errors: "0" }])
  expect(code).toBe(0)
})

it("requests are sent at a rate, whether or not those before them are answered", async () => {
  const { code, output } = await bench(
    "-m=sum",
    `-u=grpc://${grpc}`,
    "--shape=IN:5",
    "--request-rate-range=500:1000:500",
  )
  expect(rows(output)).toMatchObject([
    { "sent/s": "500.0", errors: "0" },
    { "sent/s": "1000", errors: "0" },
  ])
  expect(code).toBe(0)
})

it("takes inputs from a file, and writes what it has found out: JSON, a table and a picture", async () => {
  const file = (name: string) => join(folder, name)
  const inputs = { data: [{ IN: { content: [1, 2, 3], shape: [3] } }, { IN: { content: [1], shape: [1] } }] }
  await writeFile(file("inputs.json"), JSON.stringify(inputs))
  const flags = [`--json=${file("a.json")}`, `--svg=${file("a.svg")}`, "-f", file("a.csv"), "--percentile=95"]
  const loadFlags = [`--input-data=${file("inputs.json")}`, "--concurrency-range=1:3:2"]
  const { code, output } = await bench("-m=sum", `-u=${http}`, ...loadFlags, ...flags)
  expect(code, output).toBe(0)
  expect(output).toContain("request:  IN FP32[1,3]; 12 bytes, 2 different requests")
  expect(JSON.parse(await readFile(file("a.json"), "utf8"))).toMatchObject({
    url: http,
    protocol: "http",
    model: { name: "sum" },
    request: { batch_size: 1, inputs: [{ name: "IN", datatype: "FP32", shape: [1, 3], bytes: 12 }] },
    levels: [
      {
        concurrency: 1,
        requests: 80,
        errors: { count: 0 },
        latency: { percentiles: { 95: expect.any(Number), 99.9: expect.any(Number) } },
        server: { requests: 80, mean_batch: 1 },
        rounds: [{ requests: 40 }, { requests: 40 }],
      },
      { concurrency: 3 },
    ],
  })
  expect(await readFile(file("a.svg"), "utf8")).toContain("sum over HTTP, binary tensors")
  expect(await readFile(file("a.csv"), "utf8")).toMatch(/^concurrency,.*p95 ms.*\n1,.*\n3,.*\n$/)
})

it("connects over TLS to a server with a configured authority", async () => {
  const file = (name: string) => join(folder, name)
  const trusted = authority()
  const { cert, key } = trusted.issue("server")
  await writeFile(file("ca.crt"), trusted.cert)
  await writeFile(file("tls.crt"), cert)
  await writeFile(file("tls.key"), key)
  const tls = ["http", "grpc"].flatMap((port) => [
    `--${port}-use-ssl=1`,
    `--${port}-server-cert=${file("tls.crt")}`,
    `--${port}-server-key=${file("tls.key")}`,
  ])
  await using secure = nereid("serve", module, "--http-port=0", "--grpc-port=0", "--allow-metrics=0", ...tls)
  const [, grpcs] = await secure.match(/GRPCInferenceService at .*:(\d+)/)
  const [, https] = await secure.match(/HTTPService at .*:(\d+)/)
  const benchWith = (url: string, ...flags: ReadonlyArray<string>) =>
    bench("-m=sum", `-u=${url}`, "--shape=IN:5", ...flags)
  const [trusting, doubting] = await Promise.all([
    benchWith(`grpcs://localhost:${grpcs}`, `--tls-ca=${file("ca.crt")}`),
    benchWith(`https://localhost:${https}`),
  ])
  expect(trusting.output).toContain(" (TLS)\n")
  expect(trusting.code, trusting.output).toBe(0)
  expect(doubting).toMatchObject({
    code: 1,
    output: expect.stringMatching(/^Error: cannot connect to localhost:\d+: .*certificate/),
  })
})

it("a refusal of the server ends it before the load, a failure under load after it, both with 1", async () => {
  const refused = await bench("-m=fail", `-u=${http}`, "--string-data=bad")
  expect(refused.output).toMatch(/^Error: POST \/v2\/models\/fail\/infer: HTTP status 500: .*it is bad\n$/)
  expect(refused.code).toBe(1)
  const failing = await bench("-m=fail", `-u=${http}`, "--string-data=sometimes", "--concurrency=2")
  expect(rows(failing.output)).toMatchObject([{ concurrency: "2", errors: expect.stringMatching(/^[1-9]/) }])
  expect(failing.output).toMatch(/Error: \d+ requests failed\n +\d+ × HTTP status 500: .*it is sometimes\n$/)
  expect(failing.code).toBe(1)
})

it("a server that goes away ends it with 1; the levels before that are results all the same", async () => {
  await using short = nereid("serve", module, "--http-port=0", "--allow-grpc=0", "--allow-metrics=0")
  const [, port] = await short.match(/HTTPService at .*:(\d+)/)
  const path = join(folder, "gone.json")
  const flags = [
    "-m=sum",
    `-u=localhost:${port}`,
    "--shape=IN:3",
    "--concurrency=1:500",
    `--json=${path}`,
    "--seconds=0.1",
  ]
  const program = nereid("bench", ...flags, "--rounds=1", "--warm-up=0")
  await program.match(/^ +1 +\d/m)
  short.signal("SIGTERM")
  expect(await program.ended).toMatchObject({ code: 1, output: expect.stringContaining("Error: ") })
  expect(JSON.parse(await readFile(path, "utf8")).levels[0]).toMatchObject({ concurrency: 1, errors: { count: 0 } })
})

it("ends with 130 when it is stopped", async () => {
  const program = nereid("bench", "-m=sum", `-u=${http}`, "--shape=IN:3", "--seconds=600")
  await program.match(/concurrency/)
  program.signal("SIGINT")
  expect((await program.ended).code).toBe(130)
})

it("reports an error in one line, and exits with 1", async () => {
  const { code, output } = await bench(`-u=${http}`, "-m=sum", "--shape=IN:3", "--svg=/absent/a.svg")
  expect(output).toMatch(/^Error: .*ENOENT.*\n$/)
  expect(code).toBe(1)
})
