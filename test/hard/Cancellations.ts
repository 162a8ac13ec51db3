/** Clients that cancel calls: beside other calls of their connection, and as a flood. */
import { connect } from "node:net"
import * as Http2Frame from "../conformance/fuzz/Http2Frame.ts"
import { type Attack, sleep } from "./Attack.ts"
import { CancellingClient } from "./CancellingClient.ts"
import * as GrpcCalls from "./GrpcCalls.ts"
import { Target } from "./Target.ts"

const small = GrpcCalls.request(1)

export const besideCalls: Attack = {
  name: "5,000 cancelled calls/s beside 100 calls/s on one connection",
  seconds: 60,
  start: () => Target.serve(),
  run: async (target, { seconds }) => {
    const client = new CancellingClient(target.grpc)
    const calls: Array<Promise<string>> = []
    let cancelled = 0
    const startedAt = performance.now()
    for (let elapsed = 0; elapsed < seconds * 1000; elapsed = performance.now() - startedAt) {
      for (; cancelled < elapsed * 5; cancelled++) client.cancelled(small)
      while (calls.length < elapsed / 10) calls.push(client.call(small))
      await sleep(5)
    }
    const statuses = await Promise.all(calls)
    const failed = statuses.filter((status) => status !== "0")
    if (failed.length > 0) {
      const first = statuses.findIndex((status) => status !== "0")
      const place = `the first one was call ${first}; the connection has received ${client.end}`
      throw new Error(`${failed.length} of ${statuses.length} calls failed with ${failed[0]}; ${place}`)
    }
    client.destroy()
    return `${statuses.length} calls answered, ${cancelled} cancelled`
  },
}

const { encode, Flag, Type } = Http2Frame

/** Calls from one number on, each cancelled at once. */
const cancelledCalls = (first: number, count: number): Buffer =>
  Buffer.concat(
    Array.from({ length: count }, (_, index) => {
      const stream = 2 * (first + index) + 1
      const reset = encode(Type.RST_STREAM, 0, stream, Buffer.of(0, 0, 0, 8))
      return Buffer.concat([encode(Type.HEADERS, Flag.END_HEADERS, stream, GrpcCalls.headerBlock), reset])
    }),
  )

export const flood: Attack = {
  name: "cancelled calls and nothing else",
  seconds: 10,
  start: () => Target.serve(),
  run: async (target) => {
    let cancelled = 0
    await new Promise<void>((resolve) => {
      const socket = connect(target.grpc, "localhost")
      const more = () => {
        const calls = cancelledCalls(cancelled, 1000)
        cancelled += 1000
        if (socket.writable && socket.write(calls)) setImmediate(more)
      }
      socket
        .on("error", () => {})
        .on("drain", more)
        .on("close", () => resolve())
      socket.resume().write(Http2Frame.preface)
      more()
    })
    if ((await target.actions("stream_resets")) === 0) throw new Error("the limit was not reported")
    const next = GrpcCalls.open(target.grpc)
    const { status } = await GrpcCalls.call(next, small)
    next.destroy()
    if (status !== "0") throw new Error(`the next connection failed: ${status}`)
    return `closed after ${cancelled} cancelled calls`
  },
}
