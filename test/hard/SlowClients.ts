/** Clients that send a byte now and then: headers, bodies, and messages of gRPC. */
import { connect, type Socket } from "node:net"
import * as Http2Frame from "../conformance/fuzz/Http2Frame.ts"
import { type Attack, repeated, sleep } from "./Attack.ts"
import { beside } from "./Callers.ts"
import * as GrpcCalls from "./GrpcCalls.ts"
import { Target } from "./Target.ts"

const clients = 300

const line = Buffer.from("POST /v2/models/zeros/infer HTTP/1.1\r\nhost: localhost\r\n")
const { encode, Flag, Type } = Http2Frame
const kinds = [
  { port: "http", first: line, next: Buffer.from("a: b\r\n") },
  {
    port: "http",
    first: Buffer.concat([line, Buffer.from("content-length: 1000000\r\n\r\n")]),
    next: Buffer.from(" "),
  },
  {
    port: "grpc",
    first: Buffer.concat([
      Http2Frame.preface,
      encode(Type.HEADERS, Flag.END_HEADERS, 1, GrpcCalls.headerBlock),
      encode(Type.DATA, 0, 1, Buffer.of(0, 0, 1, 0, 0)),
    ]),
    next: encode(Type.DATA, 0, 1, Buffer.of(0)),
  },
] as const

export const trickle: Attack = {
  name: `${clients} clients that send a byte each second`,
  seconds: 45,
  start: () => Target.serve(),
  run: async (target, { seconds }) => {
    const sockets: Array<readonly [Socket, Buffer]> = []
    for (let client = 0; client < clients; client++) {
      const kind = kinds[client % kinds.length] ?? kinds[0]
      const socket = connect(target[kind.port], "localhost")
        .on("error", () => {})
        .resume()
      socket.write(kind.first)
      sockets.push([socket, kind.next])
    }
    const answers = await beside(target, () =>
      repeated(seconds, async () => {
        for (const [socket, next] of sockets) if (socket.writable) socket.write(next)
        await sleep(Math.min(1000, seconds * 200))
      }),
    )
    const ended = await target.actions("receive_time")
    for (const [socket] of sockets) socket.destroy()
    // Both kinds that have begun a body are too slow after 10 to 20 seconds.
    if (seconds > 30 && ended < (clients / kinds.length) * 2) throw new Error(`only ${ended} bodies were ended`)
    return `${ended} bodies ended, ${answers} requests answered`
  },
}
