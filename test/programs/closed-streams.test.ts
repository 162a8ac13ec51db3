/** A server whose stdout and stderr lose their reader goes on serving, and counts what it could not write. */
import { expect, it } from "vitest"
import { command, Program } from "../Program.ts"

it.each(["stdout", "stderr"] as const)("a server whose %s is closed goes on serving", async (name) => {
  const ports = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"]
  await using server = new Program([command, "serve", "examples/add-sub/server.ts", "--log-verbose=1", ...ports])
  const [, http] = await server.match(/HTTPService at [^:]+:(\d+)/)
  const [, metrics] = await server.match(/Metrics Service at [^:]+:(\d+)/)
  server.close(name)
  // Each request is logged.
  for (let request = 0; request < 20; request++) {
    const response = await fetch(`http://localhost:${http}/v2/health/ready`)
    expect(response.status).toBe(200)
  }
  if (name === "stdout") return
  const text = await (await fetch(`http://localhost:${metrics}/metrics`)).text()
  expect(Number(/nereid_standard_stream_failed_writes (\d+)/.exec(text)?.[1])).toBeGreaterThan(10)
})
