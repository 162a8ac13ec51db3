/** The programs and tests of the guide on sequences, as they stand there. */
import { Server } from "@nereid/server"
import { afterAll, expect, it } from "vitest"
import { Guide } from "./Guide.ts"

const guide = new Guide("docs/guides/sequences.md")
afterAll(() => guide[Symbol.dispose]())

it("compiles", { timeout: 60_000 }, () => {
  expect(() => guide.compile()).not.toThrow()
})

// Their tests are tests of this file.
await import(guide.file("sums.test.ts"))
await import(guide.file("count.test.ts"))
for (const program of ["window.ts", "words.ts", "onnx.ts", "writer.ts"]) await import(guide.file(program))
const { Sums, SumsLive } = await import(guide.file("models.ts"))
const { Recorder, RecorderLive } = await import(guide.file("recorder.ts"))
const { total } = await import(guide.file("client.ts"))
const { add } = await import(guide.file("triton.ts"))

const anywhere = { host: "127.0.0.1", port: 0 } as const
const everywhere = { http: anywhere, grpc: anywhere, metrics: false } as const

it("clients open sessions", async () => {
  await using server = await Server.start([Sums], SumsLive, everywhere)
  expect(await total(`http://127.0.0.1:${server.http.port}`, [1, 2, 3])).toBe(6)
  expect(await total(`grpc://127.0.0.1:${server.grpc.port}`, [1, 2, 3])).toBe(6)
})

it("Triton's clients send parameters", async () => {
  await using server = await Server.start([Sums], SumsLive, everywhere)
  const url = `http://127.0.0.1:${server.http.port}`
  expect(await add(url, 5, 1, { sequence_start: true })).toBe(1)
  expect(await add(url, 5, 2)).toBe(3)
  expect(await add(url, 5, 3, { sequence_end: true })).toBe(6)
})

it("a handler for each sequence holds a resource", async () => {
  await using server = await Server.start([Recorder], RecorderLive, everywhere)
  const record = async (text: string, flags = {}) => {
    const response = await fetch(`http://127.0.0.1:${server.http.port}/v2/models/recorder/infer`, {
      method: "POST",
      body: JSON.stringify({
        parameters: { sequence_id: "one", ...flags },
        inputs: [{ name: "AUDIO", datatype: "BYTES", shape: [1], data: [text] }],
      }),
    })
    return response.json()
  }
  expect(await record("hello ", { sequence_start: true })).toMatchObject({ outputs: [{ data: [6] }] })
  expect(await record("world", { sequence_end: true })).toMatchObject({ outputs: [{ data: [11] }] })
})
