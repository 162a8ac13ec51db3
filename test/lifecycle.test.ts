/** Programs that serve, as a user writes them, up to their end. (`nereid serve`: serve.test.ts; within one: the server's.) */
import { connect } from "node:net"
import { Client } from "@nereid/client"
import { expect, it } from "vitest"
import { Patient } from "./fixtures/modules/patient.ts"
import { Program } from "./Program.ts"

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
    const answers = Promise.all([overHttp.infer({ TEXT: "over HTTP" }), overGrpc.infer({ TEXT: "over gRPC" })])
    await program.match(/entered\nentered\n/)
    program.signal("SIGTERM")
    expect(await answers).toEqual([{ TEXT: "over HTTP" }, { TEXT: "over gRPC" }])
    expect(await program.ended).toMatchObject({ code: 0, signal: null })
    for (const port of [http, grpc]) expect(await refuses(Number(port))).toBe(true)
  },
)
