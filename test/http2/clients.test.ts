/**
 * Programs that speak HTTP/2, against a server with each implementation: curl, nghttp2's client and load generator, and
 * grpc-go, which `npm run test:http2` compiles. A program that is not there is skipped, with a line. Chromium is in
 * test/dashboard/Http2.test.ts, Envoy in test/deploy/proxies.test.ts, grpcio of Python in test/interop, and grpc-js in
 * test/tls.test.ts.
 */
import { execFile, spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { create, toBinary } from "@bufbuild/protobuf"
import { Model, Tensor } from "@nereid/core"
import { ModelInferRequestSchema } from "@nereid/protocol/grpc_service"
import { Server } from "@nereid/server"
import { Effect, Layer } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { authority } from "../fixtures/certificate.ts"

const shape = { inputs: { DATA: Tensor.UINT8(-1) }, outputs: { DATA: Tensor.UINT8(-1) } }

class Echo extends Model.Service<Echo>()("echo", shape) {}

class Never extends Model.Service<Never>()("never", shape) {}

const models = Layer.mergeAll(
  Model.each(Echo, ({ DATA }) => ({ DATA })),
  Model.each(Never, () => Effect.never),
)

const isThere = (program: string) => {
  if (spawnSync(program, ["--version"]).status === 0) return true
  console.log(`Skipped, there is no ${program}: its tests over HTTP/2`)
  return false
}

const goClient = join(import.meta.dirname, ".tools/bin/grpc-go")

const hasGoClient = existsSync(goClient)
if (!hasGoClient) console.log("Skipped, `npm run test:http2` has not compiled the client of grpc-go: its tests")

/** The output of a program, whatever its exit code. The servers are in this process. */
const run = (program: string, ...args: ReadonlyArray<string>): Promise<string> =>
  new Promise((resolve) => {
    execFile(program, args, { timeout: 50_000, maxBuffer: 2 ** 26 }, (error, stdout, stderr) =>
      resolve(error === null ? stdout : `${stdout}${stderr}exit code ${error.code}`),
    )
  })

const [hasCurl, hasNghttp, hasH2load] = ["curl", "nghttp", "h2load"].map(isThere)

const folder = mkdtempSync(join(tmpdir(), "nereid-http2-"))
const file = (name: string) => join(folder, name)

/** A request of gRPC with so many bytes. */
const request = (modelName: string, size: number): Uint8Array =>
  toBinary(
    ModelInferRequestSchema,
    create(ModelInferRequestSchema, {
      modelName,
      inputs: [{ name: "DATA", datatype: "UINT8", shape: [BigInt(size)] }],
      rawInputContents: [new Uint8Array(size).fill(7)],
    }),
  )

/** The same of HTTP, with JSON. */
const json = (size: number): string =>
  JSON.stringify({
    inputs: [{ name: "DATA", datatype: "UINT8", shape: [size], data: Array.from({ length: size }, () => 7) }],
  })

afterAll(() => rmSync(folder, { recursive: true }))

const certificates = authority()
const tls = { cert: file("cert"), key: file("key") }

const start = (http2: "own" | "node", secured: { readonly grpc?: typeof tls; readonly port?: typeof tls }) => {
  const localhost = { host: "127.0.0.1", port: 0 }
  const options = { http: false, metrics: false, http2, tls: secured } as const
  return Server.start([Echo, Never], models, { ...options, grpc: localhost, port: localhost })
}

const infer = "/v2/models/echo/infer"

describe.each(["own", "node"] as const)("with http2: %s", (http2) => {
  let servers: ReadonlyArray<Awaited<ReturnType<typeof start>>> = []
  let [grpc, grpcs, port, ports] = [0, 0, 0, 0]

  beforeAll(async () => {
    writeFileSync(file("ca"), certificates.cert)
    const issued = certificates.issue("server")
    writeFileSync(tls.cert, issued.cert)
    writeFileSync(tls.key, issued.key)
    writeFileSync(file("small"), request("echo", 10))
    writeFileSync(file("large"), request("echo", 6_000_000))
    writeFileSync(file("slow"), request("never", 10))
    writeFileSync(file("json"), json(10))
    writeFileSync(file("large-json"), json(1_000_000))
    const [plain, secure] = [await start(http2, {}), await start(http2, { grpc: tls, port: tls })]
    servers = [plain, secure]
    ;[grpc, grpcs] = [plain.grpc?.port ?? 0, secure.grpc?.port ?? 0]
    ;[port, ports] = [plain.port.port, secure.port.port]
  })
  afterAll(async () => {
    for (const server of servers) await server.stop()
  })

  describe.skipIf(!hasCurl)("curl", () => {
    it("gets, posts and is refused, with prior knowledge", async () => {
      const curl = (...args: ReadonlyArray<string>) =>
        run("curl", "--silent", "--http2-prior-knowledge", "--write-out", " %{http_version} %{http_code}", ...args)
      expect(await curl(`http://127.0.0.1:${port}/v2`)).toMatch(/"name":"nereid".* 2 200$/s)
      const reply = await curl("--data-binary", `@${file("large-json")}`, `http://127.0.0.1:${port}${infer}`)
      expect(reply).toMatch(/"shape":\[1000000\].* 2 200$/s)
      expect(await curl(`http://127.0.0.1:${port}/v2/models/missing`)).toMatch(/ 2 404$/)
    })

    it("agrees on it by ALPN, and downgrades", async () => {
      const curl = (...args: ReadonlyArray<string>) => {
        const always = ["--silent", "--cacert", file("ca"), "--output", "/dev/null", "--write-out", "%{http_version}"]
        return run("curl", ...always, ...args, `https://localhost:${ports}/v2`)
      }
      expect(await curl("--http2")).toBe("2")
      expect(await curl("--http1.1")).toBe("1.1")
    })

    it("sends many requests on one connection", async () => {
      // With prior knowledge, curl 7.88 does not use a connection again, whatever the server.
      const url = `https://localhost:${ports}/v2/health/ready?[1-100]`
      const output = ["--write-out", "%{http_code} %{num_connects}\n"]
      const reply = await run("curl", "--silent", "--cacert", file("ca"), "--http2", ...output, url)
      expect(reply).toBe(`200 1\n${"200 0\n".repeat(99)}`)
    })
  })

  describe.skipIf(!hasNghttp)("nghttp", () => {
    it("sends padded frames, header blocks of several frames, and trailers", async () => {
      const data = ["--data", file("json"), "--header", "content-type: application/json", "--trailer", "x-end: 1"]
      const wrapped = ["--continuation", "--padding=200", "--multiply=20"]
      const reply = await run("nghttp", ...wrapped, ...data, `http://127.0.0.1:${port}${infer}`)
      expect(reply.match(/"shape":\[10\]/g)).toHaveLength(20)
    })

    it("reads a large response through small windows", async () => {
      const data = ["--data", file("large-json"), "--window-bits=10", "--connection-window-bits=12"]
      const reply = await run("nghttp", ...data, `http://127.0.0.1:${port}${infer}`)
      expect(reply).toMatch(/"shape":\[1000000\]/)
      expect(reply.length).toBeGreaterThan(2_000_000)
    })
  })

  describe.skipIf(!hasH2load)("h2load", () => {
    it.each<[string, () => string, ...ReadonlyArray<string>]>([
      ["plain", () => `http://127.0.0.1:${port}/v2/health/ready`],
      ["TLS", () => `https://127.0.0.1:${ports}/v2/health/ready`],
      ["posts", () => `http://127.0.0.1:${port}${infer}`, "--data", file("json")],
    ])("completes all of its requests: %s", async (_, url, ...args) => {
      const reply = await run(
        "h2load",
        "--requests=3000",
        "--clients=10",
        "--max-concurrent-streams=16",
        ...args,
        url(),
      )
      expect(reply).toMatch(/3000 done, 3000 succeeded, 0 failed, 0 errored, 0 timeout/)
      expect(reply).toMatch(/status codes: 3000 2xx/)
    })
  })

  describe.skipIf(!hasGoClient)("grpc-go", () => {
    it.each([
      ["the gRPC port", () => [`localhost:${grpc}`]],
      ["the shared port", () => [`localhost:${port}`]],
      ["the gRPC port, TLS", () => [`localhost:${grpcs}`, file("ca")]],
      ["the shared port, TLS", () => [`localhost:${ports}`, file("ca")]],
    ])("calls, streams and cancels: %s", async (_, target) => {
      const [address = "", ...ca] = target()
      const lines = await run(goClient, address, folder, ...ca)
      expect(lines.split("\n").filter((line) => line !== "" && !line.startsWith("ok "))).toEqual([])
      expect(lines).toContain("ok small calls after that")
    })
  })
})
