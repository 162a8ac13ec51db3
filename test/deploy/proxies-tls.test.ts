/** Proxies that speak TLS with the servers as well, by the settings that the guide on deployment shows. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Client } from "@nereid/client"
import { Tensor } from "@nereid/core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { authority } from "../fixtures/certificate.ts"
import { root } from "../Program.ts"
import { type ProxiedServer, Size, start } from "./ProxiedModels.ts"
import { isInstalled, proxies, type Proxy, RunningProxy } from "./Proxy.ts"
import { expectNoneLost, rollingRestart } from "./RollingRestart.ts"

const guide = readFileSync(join(root, "docs/guides/deployment.md"), "utf8")

/** The settings of the guide, in parts between empty lines. The certificates of the tests are for localhost. */
const settings = (name: string): ReadonlyArray<string> => {
  const [, text = ""] = new RegExp(`^# ${name}, in .*\\n([^]*?)^\`\`\``, "m").exec(guide) ?? []
  const parts = text.trimEnd().replaceAll("models.internal", "localhost").split("\n\n")
  if (parts[0] === "") throw new Error(`the guide has no TLS between ${name} and the servers`)
  return parts
}

/** Puts the next part in the place of each line that matches, or above it. */
const insert = (text: string, pattern: RegExp, parts: ReadonlyArray<string>, isAbove = false): string => {
  let count = 0
  const changed = text.replaceAll(pattern, (line, indentation: string) => {
    const part = (parts[count++ % parts.length] ?? "").replaceAll(/^(?=.)/gm, indentation)
    return isAbove ? `${part}\n${line}` : part
  })
  expect(count).toBe(2)
  return changed
}

const changes: Readonly<Record<Proxy["name"], (configuration: string) => string>> = {
  nginx: (text) => insert(text, /^( *)(?:grpc|proxy)_pass .*$/gm, settings("nginx")),
  haproxy: (text) => insert(text, /^( *)default-server .*$/gm, settings("haproxy")),
  envoy: (text) => insert(text, /^( *)connect_timeout.*$/gm, settings("envoy"), true),
}

const issuer = authority()
const folder = mkdtempSync(join(tmpdir(), "nereid-tls-"))
const tls = { cert: join(folder, "tls.crt"), key: join(folder, "tls.key") }
let servers: Array<ProxiedServer> = []

beforeAll(async () => {
  const { cert, key } = issuer.issue("localhost")
  writeFileSync(tls.cert, cert)
  writeFileSync(tls.key, key)
  servers = await Promise.all([1, 2, 3].map((server) => start(server, { tls })))
})

afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()))
  rmSync(folder, { recursive: true })
})

/** Number of the next server. */
let next = 4

describe.each(proxies)("$name", (definition) => {
  const change = changes[definition.name]

  it.skipIf(!isInstalled(definition))("calls the servers by TLS, over HTTP and gRPC", async () => {
    await using proxy = await RunningProxy.start(definition, servers, { files: { "ca.crt": issuer.cert }, change })
    expect(await proxy.server()).toBeGreaterThan(0)
    await using size = await Client.connect(Size, proxy.url("grpcs"))
    const DATA = Tensor.make("UINT8", [2 ** 20], new Uint8Array(2 ** 20))
    for (let call = 0; call < 10; call++) expect((await size.infer({ DATA })).BYTES).toBe(2 ** 20)
  })

  it.skipIf(!isInstalled(definition))("loses no request while all servers restart", { timeout: 120_000 }, async () => {
    await using proxy = await RunningProxy.start(definition, servers, { files: { "ca.crt": issuer.cert }, change })
    const restart = rollingRestart(proxy, servers, next, { tls })
    next += servers.length
    expectNoneLost(`${definition.name} with TLS to the servers`, await restart)
  })

  it.skipIf(!isInstalled(definition))("refuses servers with a certificate of another authority", async () => {
    // Two intervals of the health checks.
    const options = { files: { "ca.crt": authority("another").cert }, change, patience: 4_500 }
    await expect(RunningProxy.start(definition, servers, options)).rejects.toThrow(/answers 50[23]/)
  })
})
