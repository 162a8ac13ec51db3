/**
 * Memory of an idle connection, of an idle stream, and of a small queued request: the difference of the server's memory
 * before and after it has many of them. With NEREID_HTTP2=node in the environment, those of node:http2.
 */
import { once } from "node:events"
import { connect as connectHttp2 } from "node:http2"
import { setTimeout } from "node:timers/promises"
import type { Connection, Replies, Target } from "@nereid/bench/internal/target/Load"
import * as RequestLoad from "./RequestLoad.ts"
import type { Child } from "./Child.ts"
import type { Memory } from "./Reporter.ts"
import { framed } from "./framed.ts"
import * as Request from "./Request.ts"

export interface Measured {
  readonly lines: ReadonlyArray<string>
  readonly errors: ReadonlyArray<string>
}

/** With `full`, as many connections and requests as make the difference large; else a few, to see that it works. */
export const measure = async (server: Child, bare: Child, full: boolean): Promise<Measured> => {
  const connections = full ? 1_000 : 20
  const queued = full ? 10_000 : 50
  const errors: Array<string> = []

  const idle = async (load: RequestLoad.RequestLoad) => {
    const replyLength = await RequestLoad.replyLength(server, load)
    const sides = [
      [server, RequestLoad.target(server, load, replyLength)],
      [bare, RequestLoad.target(bare, RequestLoad.echoed(load, replyLength), replyLength)],
    ] as const
    const costs: Array<string> = []
    for (const [child, target] of sides) {
      const before = await child.call("memory")
      const opened = await responded(target, connections, errors)
      const after = await child.call("memory")
      for (const connection of opened) connection.close()
      costs.push(perItem(before, after, connections))
    }
    return costs.join(", bare ")
  }
  const grpc = await idle(RequestLoad.unary("add_sub", 1))
  const http = await idle(RequestLoad.http(Request.binary("add_sub"), 1))

  const stream = await idleStreams(server, full ? 1_000 : 20)

  // Streams of a connection are bounded, so there are several; a connection of HTTP has one request at a time.
  const grpcQueued = await waiting(server, RequestLoad.unary("held", 1), queued, Math.ceil(queued / 500), errors)
  const httpQueued = await waiting(
    server,
    RequestLoad.http(Request.binary("held"), 1),
    connections,
    connections,
    errors,
  )

  return {
    lines: [
      `an idle gRPC connection ${grpc}`,
      `an idle gRPC stream ${stream}`,
      `an idle HTTP connection ${http}`,
      `a request queued over gRPC ${grpcQueued}`,
      `over HTTP ${httpQueued}`,
    ],
    errors,
  }
}

/** Memory of open gRPC streams that have received a response, on four connections. */
const idleStreams = async (server: Child, count: number): Promise<string> => {
  const sessions = Array.from({ length: 4 }, () => connectHttp2(`http://127.0.0.1:${server.ports.grpc}`))
  const { path, headers, body } = Request.grpcStream("add_sub", "1")
  const open = async (index: number) => {
    const stream = sessions[index % sessions.length]?.request({ ":method": "POST", ":path": path, ...headers })
    if (stream === undefined) return
    stream.write(framed(body))
    await once(stream, "data")
  }
  // Caches fill with the first ones.
  for (let index = 0; index < 20; index++) await open(index)
  const before = await server.call("memory")
  for (let index = 0; index < count; index++) await open(index)
  const after = await server.call("memory")
  for (const session of sessions) session.destroy()
  return perItem(before, after, count)
}

/** Memory of queued requests of a model that never answers, excluding their connections. */
const waiting = async (
  server: Child,
  load: RequestLoad.RequestLoad,
  count: number,
  connections: number,
  errors: Array<string>,
): Promise<string> => {
  const opened = await connect(RequestLoad.target(server, load, 0), connections, (_, problem = "an answer") =>
    errors.push(problem),
  )
  const before = await server.call("memory")
  const queued = async () => (await server.call("report")).models["held"]?.pending ?? 0
  for (let index = 0; index < count; index++) opened[index % connections]?.send(performance.now())
  // One of them runs.
  while ((await queued()) < count - 1 && errors.length === 0) await setTimeout(10)
  const after = await server.call("memory")
  for (const connection of opened) connection.close()
  while ((await queued()) > 0) await setTimeout(10)
  return perItem(before, after, count)
}

const perItem = (before: Memory, after: Memory, count: number): string => {
  const kibibytes = (bytes: number) => (bytes / count / 1024).toFixed(1)
  return `${kibibytes(after.heap - before.heap)} KiB (${kibibytes(after.resident - before.resident)} resident)`
}

/** Connections that have received a response. */
const responded = async (target: Target, count: number, errors: Array<string>): Promise<ReadonlyArray<Connection>> => {
  const { promise, resolve } = Promise.withResolvers<void>()
  let left = count
  const opened = await connect(target, count, (_, problem) => {
    if (problem !== undefined) errors.push(problem)
    if (--left === 0) resolve()
  })
  for (const connection of opened) connection.send(performance.now())
  await promise
  return opened
}

const connect = async (
  target: Target,
  count: number,
  onReply: Replies["onReply"],
): Promise<ReadonlyArray<Connection>> => {
  const replies = { onReply, onUnseen: () => onReply(0, "the server closed the connection") }
  const connections: Array<Connection> = []
  for (let index = 0; index < count; index++) connections.push(await target.connect(replies))
  return connections
}
