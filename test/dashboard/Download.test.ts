/** A large model that a server downloads from an object store, while the page is open. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Exit, Scope } from "effect"
import { expect, it, vi } from "vitest"
import * as FakeS3 from "../../packages/repository/src/storage/store/FakeS3.fixture.ts"
import { plus } from "../fixtures/repository.ts"
import { freePort, nereidWith } from "../Program.ts"
import { inBrowser } from "./Page.fixture.ts"

/** More than one range of 16 MiB. */
const large = new Uint8Array(40_000_000)

/** The last range arrives in these parts, each once the test wants it. */
const parts = [1_000_000, 3_000_000]

const wanted = parts.map(() => Promise.withResolvers<void>())

/** The rest of the last range. */
const rest = Promise.withResolvers<void>()

const lastStart = 2 * 16 * 1024 * 1024

const isOk = ({ ok }: Response): boolean => ok

const start = async () => {
  const scope = Scope.makeUnsafe()
  const store = await Effect.runPromise(Scope.provide(FakeS3.make, scope))
  store.put("m/1/model.onnx", plus(1))
  store.put("m/weights.bin", large)
  store.fault = ({ url, headers }, response) => {
    if (url?.includes("weights.bin") !== true || headers.range?.startsWith(`bytes=${lastStart}-`) !== true) return false
    const length = large.length - lastStart
    const range = `bytes ${lastStart}-${large.length - 1}/${large.length}`
    response.writeHead(206, { "content-range": range, "content-length": length })
    void (async () => {
      let left = length
      for (const [index, bytes] of parts.entries()) {
        await wanted[index]?.promise
        response.write(Buffer.alloc(bytes))
        left -= bytes
      }
      await rest.promise
      response.end(Buffer.alloc(left))
    })()
    return true
  }
  const cache = mkdtempSync(join(tmpdir(), "nereid-download-"))
  // Without keys, the server would look for those of the machine.
  const variables = { AWS_ACCESS_KEY_ID: "key", AWS_SECRET_ACCESS_KEY: "secret", AWS_CONFIG_FILE: "/nowhere" }
  const port = await freePort()
  const ports = ["--http-address=127.0.0.1", `--http-port=${port}`, "--allow-grpc=false", "--allow-metrics=false"]
  const flags = [`--model-repository=${store.url}`, `--model-cache-directory=${cache}`]
  const program = nereidWith(variables, "serve", ...flags, ...ports)
  // It announces its ports once all models are loaded, but is live before.
  await vi.waitUntil(() => fetch(`http://127.0.0.1:${port}/v2/health/live`).then(isOk, () => false), {
    timeout: 30_000,
  })
  const stop = async () => {
    await program[Symbol.asyncDispose]()
    await Effect.runPromise(Scope.close(scope, Exit.void))
    rmSync(cache, { recursive: true })
  }
  return { http: { port }, stop }
}

inBrowser("a model that is downloaded", start, ({ open }) => {
  it("shows how much has arrived, on the list and on its own view, and then its signature", async () => {
    const page = await open("#/models")
    const row = page.locator("table.models tbody tr").filter({ hasText: "m" })
    await row.getByText("◌ loading").waitFor()
    await row.getByText("downloaded 33.6 MB of 40.0 MB (83 %)").waitFor()
    wanted[0]?.resolve()
    await row.getByText("downloaded 34.6 MB of 40.0 MB (86 %)").waitFor()
    const own = await open("#/models/m")
    await own.getByText("downloaded 34.6 MB of 40.0 MB (86 %)").waitFor()
    wanted[1]?.resolve()
    await row.getByText("downloaded 37.6 MB of 40.0 MB (93 %)").waitFor()
    await own.getByText("downloaded 37.6 MB of 40.0 MB (93 %)").waitFor()
    rest.resolve()
    await row.getByText("● ready").waitFor()
    await row.getByText("X FP32[1] → Y FP32[1]").waitFor()
    expect(await page.getByText("downloaded").count()).toBe(0)
  })
})
