/** The page's files over a real socket. */
import { createHash } from "node:crypto"
import { connect } from "node:net"
import { gunzipSync } from "node:zlib"
import { Effect } from "effect"
import { PageFiles } from "@nereid/dashboard"
import { Model, Tensor } from "@nereid/core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Server from "../Server.ts"
import type { ServerOptions } from "../ServerOptions.ts"

class Same extends Model.Service<Same>()("same", {
  inputs: { X: Tensor.INT32(1) },
  outputs: { X: Tensor.INT32(1) },
}) {}

const SameLive = Model.each(Same, (sample) => Effect.succeed(sample))

const local = { http: { host: "127.0.0.1", port: 0 }, grpc: false, metrics: false } as const

const start = async (options: ServerOptions) => {
  const server = await Server.start([Same], SameLive, { ...options, ...local })
  const get = (path: string, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${server.http?.port}${path}`, { redirect: "manual", ...init })
  return { server, get }
}

describe("a server with a page", () => {
  let running: Awaited<ReturnType<typeof start>>
  beforeAll(async () => {
    running = await start({ dashboard: true })
  })
  afterAll(() => running.server.stop())

  it("serves it at /, with its scripts and styles, and nothing else changes", async () => {
    const response = await running.get("/")
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"])
    const html = await response.text()
    const files = [...html.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map(([, file]) => file)
    expect(files.length).toBeGreaterThanOrEqual(3)
    for (const file of files) expect((await running.get(`/${file}`)).status, file).toBe(200)
    expect((await running.get("/nothing")).status).toBe(404)
    expect((await running.get("/", { method: "POST" })).status).toBe(405)
    expect((await running.get("/v2")).status).toBe(200)
  })

  it("allows no scripts, styles and requests but its own, and no frames", async () => {
    const { headers } = await running.get("/")
    expect(headers.get("content-security-policy")).toMatch(
      /^default-src 'none'; script-src 'self'; style-src 'self'; .*connect-src 'self'; .*frame-ancestors 'none'$/,
    )
    expect(headers.get("x-content-type-options")).toBe("nosniff")
    expect(await (await running.get("/")).text()).not.toMatch(/<script(?![^>]* src=)|<style|\bon\w+=|style=/)
  })

  it("lets browsers keep files whose names have a hash, and ask for the others", async () => {
    const files = await PageFiles.read()
    const asset = files.find(({ path }) => path.endsWith(".js"))
    const kept = await running.get(`/${asset?.path}`)
    expect(kept.headers.get("cache-control")).toContain("immutable")
    const page = await running.get("/")
    expect(page.headers.get("cache-control")).toBe("no-cache")
    const etag = page.headers.get("etag") ?? ""
    for (const known of [etag, `W/${etag}`, `"x", ${etag}`, "*"]) {
      const again = await running.get("/", { headers: { "if-none-match": known } })
      expect([again.status, again.headers.get("etag"), await again.text()], known).toEqual([304, etag, ""])
    }
    expect((await running.get("/", { headers: { "if-none-match": '"x"' } })).status).toBe(200)
  })

  it("has a tag for each encoding", async () => {
    const [gzip, plain] = await Promise.all(
      ["gzip", "gzip;q=0"].map((encoding) => running.get("/", { headers: { "accept-encoding": encoding } })),
    )
    expect([gzip?.headers.get("content-encoding"), plain?.headers.get("content-encoding")]).toEqual(["gzip", null])
    expect(gzip?.headers.get("etag")).not.toBe(plain?.headers.get("etag"))
    const known = { "if-none-match": gzip?.headers.get("etag") ?? "", "accept-encoding": "identity" }
    expect((await running.get("/", { headers: known })).status).toBe(200)
  })

  it("compresses for clients that accept it", async () => {
    const raw = await rawGet(running.server.http?.port ?? 0, "/", "accept-encoding: gzip\r\n")
    const plain = Buffer.from(
      await (await running.get("/", { headers: { "accept-encoding": "identity" } })).arrayBuffer(),
    )
    expect(raw.head).toContain("content-encoding: gzip")
    expect(gunzipSync(raw.body)).toEqual(plain)
  })
})

describe("the whole page", () => {
  it("has at most 150 KB compressed", async () => {
    const files = await PageFiles.read()
    const loaded = files.filter(({ path }) => !path.endsWith(".txt"))
    expect(loaded.reduce((sum, { compressed }) => sum + compressed.length, 0)).toBeLessThan(150_000)
    const hashes = files.map(({ body }) => createHash("sha256").update(body).digest("hex"))
    expect(new Set(hashes).size).toBe(files.length)
  })
})

describe("the path of the page", () => {
  it("can be another one, which then leads to its folder", async () => {
    const { server, get } = await start({ dashboard: { path: "/ops/dashboard" } })
    const redirect = await get("/ops/dashboard")
    expect([redirect.status, redirect.headers.get("location")]).toEqual([308, "/ops/dashboard/"])
    expect((await get("/ops/dashboard/")).status).toBe(200)
    expect((await get("/")).status).toBe(404)
    await server.stop()
  })

  it.each([
    ["/v2/page", 'the path "/v2/page" of the dashboard is reserved by the protocol'],
    ["/a b", 'the path "/a b" of the dashboard must be like "/dashboard"'],
    ["//other.example", 'the path "//other.example" of the dashboard must be like "/dashboard"'],
  ] as const)("is refused if it is %s", async (path, message) => {
    await expect(start({ dashboard: { path } })).rejects.toThrow(message)
  })

  it("serves nothing without the option", async () => {
    const { server, get } = await start({})
    expect((await get("/")).status).toBe(404)
    await server.stop()
  })

  it("is open to everybody, even if all APIs are restricted", async () => {
    const restricted = [{ apis: ["health", "metadata", "inference", "statistics"], key: "secret", value: "x" }] as const
    const { server, get } = await start({ dashboard: true, restrictedApis: { http: restricted } })
    expect((await get("/")).status).toBe(200)
    expect((await get("/v2")).status).toBe(403)
    await server.stop()
  })
})

/** A response whose body is not decompressed. */
const rawGet = (port: number, path: string, headers: string) =>
  new Promise<{ readonly head: string; readonly body: Buffer }>((resolve, reject) => {
    const chunks: Array<Uint8Array> = []
    const socket = connect(port, "127.0.0.1", () =>
      socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n${headers}\r\n`),
    )
    socket
      .on("data", (chunk) => chunks.push(Buffer.from(chunk)))
      .on("error", reject)
      .on("close", () => {
        const whole = Buffer.concat(chunks)
        const end = whole.indexOf("\r\n\r\n")
        resolve({ head: whole.subarray(0, end).toString(), body: whole.subarray(end + 4) })
      })
  })
