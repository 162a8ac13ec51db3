/**
 * What a connection that does nothing costs in memory, and a small request that waits in the queue: the difference of what
 * the server holds before and after it has many of them.
 */
import { setTimeout } from "node:timers/promises"
import type { Child } from "./Child.ts"
import * as GrpcLoad from "./GrpcLoad.ts"
import * as HttpLoad from "./HttpLoad.ts"
import type { Connection, Target } from "./Load.ts"
import * as Probe from "./Probe.ts"
import * as Request from "./Request.ts"

export interface Measured {
  readonly lines: ReadonlyArray<string>
  readonly errors: ReadonlyArray<string>
}

/** `full` has as many connections and requests as make the difference large; otherwise a few, to see that it works. */
export const measure = async (server: Child, bare: Child, full: boolean): Promise<Measured> => {
  const connections = full ? 1_000 : 20
  const queued = full ? 10_000 : 50
  const errors: Array<string> = []

  const grpc = Request.grpc("add_sub")
  const grpcBytes = (await Probe.grpc(server.ports.grpc, grpc)).length
  const http = Request.binary("add_sub")
  const httpBytes = (await Probe.http(server.ports.http, http)).length

  const idle = async (child: Child, target: Target) => {
    const before = await settled(child)
    const opened = await open(target, connections, errors)
    const after = await settled(child)
    for (const connection of opened) connection.close()
    return perItem(before, after, connections)
  }
  const grpcIdle = await idle(server, GrpcLoad.target(server.ports.grpc, grpc, grpcBytes))
  const grpcBare = await idle(bare, GrpcLoad.target(bare.ports.grpc, Request.echoed(grpc, grpcBytes), grpcBytes))
  const httpIdle = await idle(server, HttpLoad.target(server.ports.http, http, httpBytes))
  const httpBare = await idle(bare, HttpLoad.target(bare.ports.http, Request.echoed(http, httpBytes), httpBytes))

  // Streams of a connection are bounded, so there are several.
  const held = GrpcLoad.target(server.ports.grpc, Request.grpc("held"), 0)
  const connected = await connect(held, Math.ceil(queued / 500), (problem = "an answer") => errors.push(problem))
  const before = await settled(server)
  for (let index = 0; index < queued; index++) connected[index % connected.length]?.send()
  // One of them runs.
  while ((await pending(server)) < queued - 1 && errors.length === 0) await setTimeout(10)
  const after = await settled(server)
  const failed = errors.length
  for (const connection of connected) connection.close()
  while ((await pending(server)) > 0) await setTimeout(10)
  // Closing breaks off what waits.
  errors.length = failed

  return {
    lines: [
      `an idle gRPC connection ${grpcIdle} (bare ${grpcBare})`,
      `an idle HTTP connection ${httpIdle} (bare ${httpBare})`,
      `a request queued over gRPC ${perItem(before, after, queued)}`,
    ],
    errors,
  }
}

type Memory = Awaited<ReturnType<typeof settled>>

const pending = async (server: Child): Promise<number> => (await server.ask("report")).models["held"]?.pending ?? 0

const settled = (child: Child) => child.ask("memory")

const perItem = (before: Memory, after: Memory, count: number): string => {
  const kibibytes = (bytes: number) => (bytes / count / 1024).toFixed(1)
  return `${kibibytes(after.heap - before.heap)} KiB of heap, ${kibibytes(after.resident - before.resident)} KiB resident`
}

/** Connections, each of which has had an answer. */
const open = async (target: Target, count: number, errors: Array<string>): Promise<ReadonlyArray<Connection>> => {
  const { promise, resolve } = Promise.withResolvers<void>()
  let left = count
  const opened = await connect(target, count, (problem) => {
    if (problem !== undefined) errors.push(problem)
    if (--left === 0) resolve()
  })
  for (const connection of opened) connection.send()
  await promise
  return opened
}

const connect = async (
  target: Target,
  count: number,
  onReply: (problem: string | undefined) => void = () => {},
): Promise<ReadonlyArray<Connection>> => {
  const connections: Array<Connection> = []
  for (let index = 0; index < count; index++) connections.push(await target.connect((_, problem) => onReply(problem)))
  return connections
}
