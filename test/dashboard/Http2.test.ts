/** A browser over HTTP/2, on a shared port with TLS: it agrees on the protocol by ALPN. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { expect, it } from "vitest"
import { authority } from "../fixtures/certificate.ts"
import { inBrowser } from "./Page.fixture.ts"

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { DATA: Tensor.INT32(-1) },
  outputs: { DATA: Tensor.INT32(-1) },
}) {}

const EchoLive = Model.each(Echo, ({ DATA }) => ({ DATA }))

const start = (http2: "own" | "node") => async () => {
  const folder = mkdtempSync(join(tmpdir(), "nereid-page-"))
  const tls = { cert: join(folder, "tls.crt"), key: join(folder, "tls.key") }
  const { cert, key } = authority().issue("server")
  writeFileSync(tls.cert, cert)
  writeFileSync(tls.key, key)
  const server = await Server.start([Echo], EchoLive, {
    port: { host: "127.0.0.1", port: 0 },
    http: false,
    grpc: false,
    metrics: false,
    dashboard: true,
    tls: { port: tls },
    http2,
  })
  const stop = async () => {
    await server.stop()
    rmSync(folder, { recursive: true })
  }
  return { http: server.port, hasTls: true, stop }
}

for (const http2 of ["own", "node"] as const) {
  inBrowser(`HTTP/2 with http2: ${http2}`, start(http2), ({ open }) => {
    it("loads the page, and sends large and many requests on one connection", async () => {
      const page = await open()
      await page.getByText("echo").first().waitFor()
      const seen = await page.evaluate(async () => {
        const infer = async (length: number) => {
          const data = Array.from({ length }, (_, index) => index)
          const body = JSON.stringify({ inputs: [{ name: "DATA", datatype: "INT32", shape: [length], data }] })
          const reply = await fetch("/v2/models/echo/infer", { method: "POST", body })
          const { outputs }: { outputs: Array<{ shape: Array<number> }> } = JSON.parse(await reply.text())
          return outputs[0]?.shape[0]
        }
        const small = await Promise.all(Array.from({ length: 200 }, (_, index) => infer(1 + index)))
        const large = await infer(300_000)
        const cancelled = new AbortController()
        const lost = fetch("/v2/models/echo/infer", { signal: cancelled.signal }).catch((error) => error.name)
        cancelled.abort()
        const entries = performance.getEntriesByType("resource").filter(({ name }) => name.includes("/v2/"))
        const protocols = entries.map((entry) => JSON.parse(JSON.stringify(entry)).nextHopProtocol)
        return { small, large, lost: await lost, after: await infer(7), protocols: [...new Set(protocols)] }
      })
      expect(seen).toEqual({
        small: Array.from({ length: 200 }, (_, index) => 1 + index),
        large: 300_000,
        lost: "AbortError",
        after: 7,
        protocols: ["h2"],
      })
    })
  })
}
