/**
 * Programs that serve, as a user writes them, up to their end. (`nereid serve`: serve.test.ts; within one: the
 * server's.)
 */
import { connect } from "node:net"
import { Client } from "@nereid/client"
import { expect, it } from "vitest"
import { Fatal } from "../fixtures/modules/fatal.ts"
import { Patient } from "../fixtures/modules/patient.ts"
import { nereid, Program } from "../Program.ts"

const refuses = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.destroy() && resolve(false))
    socket.on("error", () => resolve(true))
  })

it.each(["blocking", "background"])(
  "%s: SIGTERM during slow requests: their answers arrive, it ends with 0, its ports are free",
  async (name) => {
    const program = new Program([`test/fixtures/programs/${name}.ts`])
    const [, http = "", grpc = ""] = await program.match(/^(\d+) (\d+)\n/)
    await using overHttp = await Client.connect(Patient, { url: `http://127.0.0.1:${http}` })
    await using overGrpc = await Client.connect(Patient, { url: `grpc://127.0.0.1:${grpc}` })
    const responses = Promise.all([overHttp.infer({ TEXT: "over HTTP" }), overGrpc.infer({ TEXT: "over gRPC" })])
    await program.match(/entered\nentered\n/)
    program.signal("SIGTERM")
    expect(await responses).toEqual([{ TEXT: "over HTTP" }, { TEXT: "over gRPC" }])
    expect(await program.ended).toMatchObject({ code: 0, signal: null })
    for (const port of [http, grpc]) expect(await refuses(Number(port))).toBe(true)
  },
)

/** Makes the model unrecoverable over `transport`; returns the error of the caller and the end of the process. */
const lose = async (program: Program, http: string, grpc: string, transport: "http" | "grpc") => {
  const url = `${transport}://127.0.0.1:${transport === "http" ? http : grpc}`
  await using model = await Client.connect(Fatal, { url })
  expect(await model.infer({ TEXT: "fine" })).toEqual({ TEXT: "fine" })
  await expect(model.infer({ TEXT: "lose the device" })).rejects.toMatchObject({
    _tag: "ExecutionFailed",
    message: expect.stringContaining("the device is lost"),
  })
  const ended = await program.ended
  for (const port of [http, grpc]) expect(await refuses(Number(port))).toBe(true)
  return ended
}

it.each([
  ["teardown", "http", 1],
  ["teardown", "grpc", 1],
  ["default", "grpc", 130],
  ["bare", "http", 1],
  ["managed", "grpc", 1],
  ["background", "grpc", 3],
] as const)(
  "%s, over %s: an unrecoverable model ends its server and the process with %i, for a restart",
  async (variant, transport, code) => {
    const program = new Program(["test/fixtures/programs/fatal.ts", variant])
    const [, http = "", grpc = ""] = await program.match(/^(\d+) (\d+)\n/)
    const ended = await lose(program, http, grpc, transport)
    expect(ended).toMatchObject({ code, signal: null })
    expect(ended.output).toContain("Stopping the server, because model 'fatal' cannot recover: the device is lost")
    expect(ended.output).toContain("unloaded")
    if (variant === "background") expect(ended.output).toContain("stopped: the device is lost")
  },
)

it("nereid serve: so too, and requests in flight have their answers before", async () => {
  const program = nereid(
    "serve",
    "test/fixtures/modules/fatal.ts",
    "--http-port=0",
    "--grpc-port=0",
    "--metrics-port=0",
  )
  const [, http = ""] = await program.match(/HTTPService at .*:(\d+)/)
  const [, grpc = ""] = await program.match(/GRPCInferenceService at .*:(\d+)/)
  await using patient = await Client.connect(Patient, { url: `http://127.0.0.1:${http}` })
  const response = patient.infer({ TEXT: "in flight" })
  await program.match(/entered/)
  const [ended] = await Promise.all([
    lose(program, http, grpc, "grpc"),
    expect(response).resolves.toEqual({ TEXT: "in flight" }),
  ])
  expect(ended).toMatchObject({ code: 1, signal: null })
  expect(ended.output).toContain("Stopping because a model cannot recover: 1 request in flight may take 30 s more")
  expect(ended.output).not.toContain("SIGTERM")
})
