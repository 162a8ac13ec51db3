/** `nereid check`: its output on this machine, and on one with a broken component. */
import { availableParallelism } from "node:os"
import { expect, it } from "vitest"
import { nereid, Program } from "../Program.ts"

it("reports the machine, and that a model answers over HTTP and gRPC", async () => {
  const { code, output } = await nereid("check").ended
  expect(output).toMatch(/^nereid \d+\.\d+\.\d+\n/)
  expect(output).toContain(`ok       Node          ${process.versions.node}, required >=22.19\n`)
  expect(output).toMatch(/\nok {7}machine {7}\S+ \S+, \d+ cores?, \d+\.\d GiB of memory\n/)
  expect(output).toMatch(/\n(ok|warning) +ports +8000/)
  expect(output).toMatch(
    /\n(ok {7}Python {8}3\.\d+\.\d+ with numpy \S+: \S+ \(|note {5}Python {8}.*\. Only models in Python need it\n)/,
  )
  const response = "add \\[\\[2],\\[2]], sub \\[\\[0],\\[0]]"
  expect(output).toMatch(new RegExp(`\nok {7}ONNX Runtime {2}\\d.*, built with .*cpu.*: ${response}\n`))
  expect(output).toMatch(new RegExp(`\nok {7}HTTP {10}http://127.0.0.1:\\d+: ${response} in [0-9.]+ ms\n`))
  expect(output).toMatch(new RegExp(`\nok {7}gRPC {10}grpc://127.0.0.1:\\d+: ${response} in [0-9.]+ ms\n`))
  expect(output).toMatch(/\nThis machine can run a server\.\n$/)
  expect(code).toBe(0)
})

it("ends with 1 where something fails, here native addons: what, as a document", async () => {
  const permissions = ["--permission", "--allow-fs-read=*", "--allow-net", "--allow-worker", "--no-warnings"]
  const { code, output } = await new Program([...permissions, "packages/cli/src/main.ts", "check", "--json"]).ended
  expect(code).toBe(1)
  expect(JSON.parse(output)).toMatchObject({
    nereid: expect.stringMatching(/^\d/),
    ok: false,
    findings: [
      { name: "Node", status: "ok", details: { version: process.versions.node } },
      { name: "machine", status: "ok", details: { cores: availableParallelism() } },
      { name: "ports" },
      { name: "ONNX Runtime", status: "failed", message: expect.stringContaining("addon") },
      { name: "Python" },
      { name: "HTTP", status: "ok", details: { add: [2, 2], sub: [0, 0] } },
      { name: "gRPC", status: "ok", details: { add: [2, 2], sub: [0, 0] } },
    ],
  })
})
