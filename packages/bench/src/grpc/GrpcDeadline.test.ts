/** Unary calls whose callers give up, against a scripted server and node:http2. */
import { expect, it } from "vitest"
import { CallDeadline, type Overload } from "../target/Load.ts"
import { Flag, Setting, Type } from "@nereid/http2/internal/frame/Frame"
import { headers, ScriptedServer } from "../http2/ScriptedServer.fixture.ts"
import { serveHttp2 } from "./GrpcServer.fixture.ts"
import * as GrpcUnary from "./GrpcUnary.ts"

const requests = [{ message: Buffer.from("hello"), replyLength: undefined }] as const

const connect = async (port: number, onReply: (startedAt: number, problem?: string, overload?: Overload) => void) => {
  const target = GrpcUnary.target({ host: "127.0.0.1", port }, { path: "/s/m", requests })
  return target.connect({ onReply, onUnseen: () => {} })
}

it("tells the time that is left, in each request anew", async () => {
  const told: Array<string> = []
  const { port } = await serveHttp2((stream, received) => {
    told.push(String(received["grpc-timeout"]))
    stream.respond({ ":status": 200, "content-type": "application/grpc", "grpc-status": "14" }, { endStream: true })
  })
  const replies: Array<unknown> = []
  const all = Promise.withResolvers<void>()
  const connection = await connect(port, (_, problem, overload) => {
    replies.push([problem, overload])
    if (replies.length === 3) all.resolve()
  })
  const now = performance.now()
  connection.send(now, new CallDeadline(now + 60_000, true))
  connection.send(now, new CallDeadline(now + 90_000, true))
  connection.send(now, new CallDeadline(now + 60_000, false))
  await all.promise
  connection.close()
  expect(told.map((text) => Math.round(Number.parseInt(text) / 10_000))).toEqual([6, 9, Number.NaN])
  expect(told.slice(0, 2).every((text) => text.endsWith("m"))).toBe(true)
  expect(replies).toEqual(Array.from({ length: 3 }, () => ["UNAVAILABLE", "refused"]))
})

it("a call that is given up is reset, and one that has not begun is never sent", async () => {
  const server = await ScriptedServer.start([[Setting.MAX_CONCURRENT_STREAMS, 1]])
  const replies: Array<number> = []
  const connection = await connect(server.port, (startedAt) => replies.push(startedAt))
  const deadlines = [1, 2, 3].map(() => new CallDeadline(performance.now() + 1000, false))
  for (const [index, deadline] of deadlines.entries()) connection.send(index, deadline)
  const began = () => server.frames.filter(({ type }) => type === Type.HEADERS).map(({ stream }) => stream)
  await server.received(() => began().length === 1)
  deadlines[1]?.cancel()
  deadlines[0]?.cancel()
  await server.received(() => began().length === 2)
  expect(server.frames.filter(({ type }) => type === Type.RST_STREAM).map(({ stream }) => stream)).toEqual([1])
  // The last one, on the next stream: the second was never sent.
  server.write(headers(1, [":status", "200"], true), headers(3, [":status", "503"], true))
  await expect.poll(() => replies).toEqual([2])
  connection.close()
})

it("a refused stream is a refusal", async () => {
  const server = await ScriptedServer.start()
  const replied = Promise.withResolvers<unknown>()
  const connection = await connect(server.port, (_, problem, overload) => replied.resolve([problem, overload]))
  connection.send(0)
  await server.received((frames) => frames.some(({ flags, type }) => type === Type.DATA && flags === Flag.END_STREAM))
  server.write(Buffer.from([0, 0, 4, Type.RST_STREAM, 0, 0, 0, 0, 1, 0, 0, 0, 7]))
  expect(await replied.promise).toEqual(["the server reset the stream: REFUSED_STREAM", "refused"])
  connection.close()
})
