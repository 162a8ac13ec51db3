/**
 * Runs h2spec against plain node:http2 and the ports of a server: `npm run test:h2spec`. Prints the failed cases, and
 * exits with 1 if they differ from the table of docs/guides/conformance.md. Without h2spec on the PATH, it exits with 0
 * and gives the reason.
 */
import { execFile, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { createServer } from "node:http2"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Server } from "@nereid/server"
import { root } from "../Program.ts"
import { Zeros, ZerosLive } from "../hard/models.ts"

/** Names of cases, as h2spec takes them on its command line: `http2/5.1/8`. */
type Cases = ReadonlySet<string>

/** The failed cases of a JUnit report. The number of a case is its position in its section. */
const failures = (report: string): Cases => {
  const numbers = new Map<string, number>()
  const failed = new Set<string>()
  for (const [, section = "", content = ""] of report.matchAll(
    /<testcase package="([^"]*)"[^>]*>([^]*?)<\/testcase>/g,
  )) {
    const number = (numbers.get(section) ?? 0) + 1
    numbers.set(section, number)
    if (/<(?:failure|error)\b/.test(content)) failed.add(`${section}/${number}`)
  }
  return failed
}

/** Returns the exit code. The server is in this process, so h2spec must not block it. */
const h2spec = async (port: number, ...args: ReadonlyArray<string>): Promise<number | null> => {
  const all = ["--strict", "--path=/v2", "--host=127.0.0.1", `--port=${port}`, ...args]
  const [code]: Array<number | null> = await once(execFile("h2spec", all, { timeout: 5 * 60_000 }), "exit")
  return code ?? null
}

const run = async (port: number): Promise<Cases> => {
  const folder = mkdtempSync(join(tmpdir(), "nereid-h2spec-"))
  const report = join(folder, "report.xml")
  try {
    await h2spec(port, `--junit-report=${report}`)
    return failures(readFileSync(report, "utf8"))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Returns a message for each difference. A differing case runs again, because a few depend on timing. */
const differences = async (port: number, failed: Cases, expected: Cases): Promise<ReadonlyArray<string>> => {
  const messages: Array<string> = []
  for (const name of failed.symmetricDifference(expected)) {
    const fails = (await h2spec(port, name)) !== 0
    if (fails !== expected.has(name)) messages.push(`${name} ${fails ? "fails" : "passes"}`)
  }
  return messages
}

/** The table's cases, which fail with Nereid, and those of them that fail with node:http2 as well. */
const documented = (): { readonly nereid: Cases; readonly node: Cases } => {
  const guide = readFileSync(join(root, "docs/guides/conformance.md"), "utf8")
  const rows = [...guide.matchAll(/^\| `((?:generic|http2|hpack)\/\S+)` \| (Node|Nereid) \|/gm)]
  const names = (of: typeof rows) => new Set(of.map(([, name = ""]) => name))
  return { nereid: names(rows), node: names(rows.filter(([, , whose]) => whose === "Node")) }
}

const test = async () => {
  const localhost = { host: "127.0.0.1", port: 0 }
  const plain = createServer((request, response) => request.resume().on("end", () => response.end("text")))
  await once(plain.listen(localhost), "listening")
  const address = plain.address()
  const off = { http: false, metrics: false } as const
  await using separate = await Server.start([Zeros], ZerosLive, { ...off, grpc: localhost })
  await using shared = await Server.start([Zeros], ZerosLive, { ...off, grpc: false, port: localhost })
  const { node, nereid } = documented()
  const ports = [
    { name: "node:http2", port: typeof address === "object" && address !== null ? address.port : 0, expected: node },
    { name: "gRPC port", port: separate.grpc.port, expected: nereid },
    { name: "shared port", port: shared.port.port, expected: nereid },
  ]
  for (const { name, port, expected } of ports) {
    const failed = await run(port)
    console.log(`${name}: ${failed.size} cases fail: ${[...failed].join(", ")}`)
    for (const difference of await differences(port, failed, expected)) {
      console.error(`${name}: ${difference}, unlike docs/guides/conformance.md`)
      process.exitCode = 1
    }
  }
  plain.close()
}

if (spawnSync("h2spec", ["--version"]).status !== 0) console.log("Skipped: h2spec is not on the PATH")
else await test()
