/**
 * A server with a model in a worker thread that dies and another model: results of callers and probes meanwhile.
 */
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Worker } from "@nereid/worker"
import { Layer } from "effect"
import { expect, it } from "vitest"
import { Command } from "../packages/worker/src/Command.fixture.ts"
import type * as commandHandler from "../packages/worker/src/CommandHandler.fixture.ts"

class Echo extends Model.Service<Echo>()("echo", { inputs: { X: Tensor.FP32(1) }, outputs: { X: Tensor.FP32(1) } }) {}

const module = new URL("../packages/worker/src/CommandHandler.fixture.ts", import.meta.url)

const CommandLive = Worker.layer<typeof commandHandler>()(Command, module, { restart: { delay: "300 millis" } })

const EchoLive = Model.each(Echo, ({ X }) => ({ X }))

it("the crash of one model leaves the server running: the other answers, readiness reports it, and it restarts", async () => {
  const layers = Layer.mergeAll(CommandLive, EchoLive)
  await using server = await Server.start([Command, Echo], layers, { http: 0, grpc: false, metrics: false })
  const url = `http://localhost:${server.http.port}/v2`
  const infer = async (model: string, input: object) => {
    const response = await fetch(`${url}/models/${model}/infer`, {
      method: "POST",
      body: JSON.stringify({ inputs: [input] }),
    })
    return { status: response.status, body: await response.json() }
  }
  const command = (text: string) => infer("command", { name: "TEXT", datatype: "BYTES", shape: [1, 1], data: [text] })
  const echo = () => infer("echo", { name: "X", datatype: "FP32", shape: [1], data: [7] })
  const status = async (path: string) => (await fetch(`${url}/${path}`)).status

  expect(await command("echo a")).toMatchObject({ status: 200, body: { outputs: [{ data: ["a"] }] } })
  expect(await status("health/ready")).toBe(200)
  const [crashed, other] = await Promise.all([command("exit 9"), echo()])
  expect(crashed).toMatchObject({ status: 500, body: { error: expect.stringContaining("exit code 9") } })
  expect(other).toMatchObject({ status: 200, body: { outputs: [{ data: [7] }] } })

  // Its next start is some time away.
  expect(await status("models/command/ready")).not.toBe(200)
  expect(await status("health/ready")).not.toBe(200)
  expect(await status("health/live")).toBe(200)
  expect(await status("models/echo/ready")).toBe(200)
  expect((await command("echo b")).status).toBe(503)
  expect(await echo()).toMatchObject({ status: 200 })

  while ((await status("health/ready")) !== 200) await new Promise((resolve) => setTimeout(resolve, 20))
  expect(await command("echo c")).toMatchObject({ status: 200, body: { outputs: [{ data: ["c"] }] } })
})
