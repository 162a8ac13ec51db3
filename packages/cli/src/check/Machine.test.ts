import { createServer } from "node:net"
import { expect, it } from "vitest"
import * as Finding from "./Finding.ts"
import * as Machine from "./Machine.ts"

it.each([
  ["22.19.0", "ok"],
  ["22.18.9", "failed"],
  ["22.100.0", "ok"],
  ["26.1.0", "ok"],
  ["20.20.0", "failed"],
  ["23.0.0-nightly", "ok"],
] as const)("Node %s where 22.19 is needed: %s", (version, status) => {
  const path = "/usr/bin/node"
  expect(Machine.node(version, ">=22.19", path)).toMatchObject({
    status,
    details: { version, needed: ">=22.19", path },
  })
})

it("a port in use is a warning that names the flag for another port", async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve))
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  const taken = await Machine.ports({ "http-port": 0, "grpc-port": port })
  expect(taken).toEqual({
    name: "ports",
    status: "warning",
    message: `port ${port} is in use (EADDRINUSE): choose another with --grpc-port`,
    details: { 0: "free", [port]: "EADDRINUSE" },
  })
  await new Promise((resolve) => server.close(resolve))
  expect(await Machine.ports({ "http-port": 0 })).toMatchObject({ status: "ok", message: "0 are free" })
})

it("a report names the failed checks; a warning is not a failure", () => {
  const findings = [
    { name: "a", status: "ok", message: "works" },
    { name: "long name", status: "warning", message: "works somehow" },
  ] as const
  expect(Finding.text(Finding.report("1.2.3", findings))).toBe(
    [
      "nereid 1.2.3",
      "ok       a          works",
      "warning  long name  works somehow",
      "This machine can run a server.",
    ].join("\n"),
  )
  const broken = Finding.report("1.2.3", [...findings, { name: "c", status: "failed", message: "no" }])
  expect(broken.ok).toBe(false)
  expect(Finding.text(broken)).toMatch(/\nfailed {3}c {10}no\nFailed: c$/)
})
