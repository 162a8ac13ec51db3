/** Declared parameters from outside: over HTTP and gRPC, from headers, and by typed clients. */
import { Client } from "@nereid/client"
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Schema } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"

class Writer extends Model.Service<Writer>()("writer", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { TOLD: Tensor.utf8() },
  maxBatchSize: 4,
  parameters: {
    temperature: Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 2 })),
    count: Schema.optionalKey(Schema.BigInt),
    "x-user": Schema.optionalKey(Schema.String.check(Schema.isMinLength(2))),
  },
}) {}

const WriterLive = Model.each(Writer, ({ TEXT }, { parameters }) => ({
  TOLD: [TEXT, parameters.temperature, parameters.count ?? "no count", parameters["x-user"] ?? "nobody"].join(", "),
}))

const anywhere = { host: "127.0.0.1", port: 0 } as const
const start = () =>
  Server.start([Writer], WriterLive, {
    http: anywhere,
    grpc: anywhere,
    metrics: false,
    forwardHeaders: { http: "^x-", grpc: "^x-" },
  })
let server: Awaited<ReturnType<typeof start>>
beforeAll(async () => void (server = await start()))
afterAll(() => server.stop())

const post = async (route: string, body: object, headers: Record<string, string> = {}) => {
  const url = `http://127.0.0.1:${server.http.port}/v2/models/writer/${route}`
  const init = { method: "POST", headers: { connection: "close", ...headers }, body: JSON.stringify(body) }
  const response = await fetch(url, init)
  return { status: response.status, text: await response.text() }
}
const inputs = [{ name: "TEXT", datatype: "BYTES", shape: [1, 1], data: ["a"] }]
const infer = (parameters: object, headers?: Record<string, string>) => post("infer", { inputs, parameters }, headers)

it("come from JSON by its types, 1 as a number or as an integer", async () => {
  expect((await infer({ temperature: 1, count: 7 })).text).toContain("a, 1, 7, nobody")
  expect((await infer({ temperature: 0.5 })).text).toContain("a, 0.5, no count, nobody")
  expect((await post("generate", { TEXT: "b", temperature: 2 })).text).toContain("b, 2, no count, nobody")
})

it("come from forwarded headers of any client", async () => {
  expect((await infer({ temperature: 1 }, { "X-User": "me" })).text).toContain("a, 1, no count, me")
  expect((await infer({ temperature: 1 }, { "x-user": "i" })).text).toContain(
    `parameter 'x-user' of model 'writer': Expected a value with a length of at least 2, got \\"i\\"`,
  )
})

it("that are invalid get status 400, with their name and the reason", async () => {
  expect(await infer({})).toEqual({
    status: 400,
    text: `{"error":"[request id: <id_unknown>] parameter 'temperature' of model 'writer': Missing key"}`,
  })
  expect((await infer({ temperature: 2.5 })).text).toContain("Expected a value between 0 and 2, got 2.5")
})

it.each(["http", "grpc"] as const)(
  "are typed for callers over %s, and checked before they are sent",
  async (protocol) => {
    const { port } = server[protocol]
    await using writer = await Client.connect(Writer, { url: `${protocol}://127.0.0.1:${port}` })
    expect(await writer.infer({ TEXT: "c" }, { parameters: { temperature: 1, count: 3n } })).toEqual({
      TOLD: "c, 1, 3, nobody",
    })
    await expect(writer.infer({ TEXT: "c" }, { parameters: { temperature: 3 } })).rejects.toMatchObject({
      _tag: "InvalidRequest",
      message:
        "[request id: <id_unknown>] parameter 'temperature' of model 'writer': Expected a value between 0 and 2, got 3",
    })
    // @ts-expect-error a required parameter is missing
    await expect(writer.infer({ TEXT: "c" })).rejects.toMatchObject({ _tag: "InvalidRequest" })
  },
)

it("are typed on streams too", async () => {
  await using writer = await Client.connect(Writer, { url: `grpc://127.0.0.1:${server.grpc.port}` })
  const received = await Array.fromAsync(writer.stream({ TEXT: "d" }, { parameters: { temperature: 0 } }))
  expect(received).toEqual([{ TOLD: "d, 0, no count, nobody" }])
})
