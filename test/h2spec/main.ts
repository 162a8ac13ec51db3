/**
 * Runs h2spec against plain node:http2 and the ports of a server with each implementation of HTTP/2: `npm run
 * test:h2spec`. Prints the failed cases, and exits with 1 if they differ from the table of docs/guides/conformance.md.
 * Without h2spec on the PATH, Go compiles it once. Without either, it exits with 0 and gives the reason.
 */
import { execFile, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { createServer } from "node:http2"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
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

/** Returns a message for each difference. A differing case runs again with more time, for a busy machine. */
const differences = async (port: number, failed: Cases, expected: Cases): Promise<ReadonlyArray<string>> => {
  const messages: Array<string> = []
  for (const name of failed.symmetricDifference(expected)) {
    const fails = (await h2spec(port, "--timeout=20", name)) !== 0
    if (fails !== expected.has(name)) messages.push(`${name} ${fails ? "fails" : "passes"}`)
  }
  return messages
}

/** The cases of the table, by their cause. Those of `Time` may fail or pass on the gRPC port. */
const documented = (): Record<"Node" | "Nereid" | "Time", Cases> => {
  const guide = readFileSync(join(root, "docs/guides/conformance.md"), "utf8")
  const rows = [...guide.matchAll(/^\| `((?:generic|http2|hpack)\/\S+)` \| (Node|Nereid|Time) \|/gm)]
  const of = (cause: string) => new Set(rows.filter((row) => row[2] === cause).map(([, name = ""]) => name))
  return { Node: of("Node"), Nereid: of("Nereid"), Time: of("Time") }
}

const test = async () => {
  const localhost = { host: "127.0.0.1", port: 0 }
  const plain = createServer((request, response) => request.resume().on("end", () => response.end("text")))
  await once(plain.listen(localhost), "listening")
  const address = plain.address()
  const off = { http: false, metrics: false } as const
  await using grpcNode = await Server.start([Zeros], ZerosLive, { ...off, http2: "node", grpc: localhost })
  await using grpcOwn = await Server.start([Zeros], ZerosLive, { ...off, http2: "own", grpc: localhost })
  const one = { ...off, grpc: false, port: localhost } as const
  await using sharedNode = await Server.start([Zeros], ZerosLive, { ...one, http2: "node" })
  await using sharedOwn = await Server.start([Zeros], ZerosLive, { ...one, http2: "own" })
  const { Node, Nereid, Time } = documented()
  const both = Node.union(Nereid)
  const none: Cases = new Set()
  const plainPort = typeof address === "object" && address !== null ? address.port : 0
  const ports = [
    { name: "node:http2", port: plainPort, expected: Node, open: none },
    { name: "gRPC port", port: grpcNode.grpc.port, expected: both, open: Time },
    { name: "shared port", port: sharedNode.port.port, expected: both, open: none },
    { name: "gRPC port, own", port: grpcOwn.grpc.port, expected: Nereid, open: Time },
    { name: "shared port, own", port: sharedOwn.port.port, expected: Nereid, open: none },
  ]
  for (const { name, port, expected, open } of ports) {
    const failed = await run(port)
    console.log(`${name}: ${failed.size} cases fail: ${[...failed].join(", ")}`)
    for (const difference of await differences(port, failed.difference(open), expected)) {
      console.error(`${name}: ${difference}, unlike docs/guides/conformance.md`)
      process.exitCode = 1
    }
  }
  plain.close()
}

/** Folder of a compiled h2spec. */
const bin = process.env["TEST_H2SPEC_TOOLS"] ?? join(import.meta.dirname, ".tools/bin")
process.env["PATH"] = `${process.env["PATH"] ?? ""}${delimiter}${bin}`

const isThere = () => spawnSync("h2spec", ["--version"]).status === 0

/** Returns why there is no h2spec; undefined if it is there. */
const prepare = (): string | undefined => {
  if (isThere()) return undefined
  const module = "github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible"
  const env = { ...process.env, GOBIN: bin, CGO_ENABLED: "0" }
  const { error, stderr } = spawnSync("go", ["install", module], { encoding: "utf8", env, timeout: 10 * 60_000 })
  if (isThere()) return undefined
  return error === undefined ? `and Go cannot compile it: ${stderr.trim().split("\n").at(-1)}` : "and neither is Go"
}

const missing = prepare()
if (missing !== undefined) console.log(`Skipped: h2spec is not on the PATH, ${missing}`)
else await test()
