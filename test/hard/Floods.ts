/** Bytes that cost a client nothing to send: frames and requests without end, on connections that read nothing. */
import { connect, type Socket } from "node:net"
import * as Http2Frame from "../conformance/fuzz/Http2Frame.ts"
import { type Attack, megabytes, repeated } from "./Attack.ts"
import { beside, expectAnswer } from "./Callers.ts"
import * as GrpcCalls from "./GrpcCalls.ts"
import { Target } from "./Target.ts"

const { encode, Flag, Type } = Http2Frame
const [PRIORITY, CONTINUATION] = [2, 9]
const none = Buffer.alloc(0)

interface Flood {
  readonly first: Buffer
  /** Sent again and again. */
  readonly next: Buffer
}

const http2 = (first: Buffer, next: Buffer): Flood => ({ first: Buffer.concat([Http2Frame.preface, first]), next })

const begun = encode(Type.HEADERS, Flag.END_HEADERS, 1, GrpcCalls.headerBlock)

const floods: ReadonlyArray<Flood> = [
  http2(none, encode(Type.SETTINGS, 0, 0, none)),
  http2(none, encode(Type.PING, 0, 0, Buffer.alloc(8))),
  http2(encode(Type.HEADERS, 0, 1, GrpcCalls.headerBlock), encode(CONTINUATION, 0, 1, GrpcCalls.headerBlock)),
  http2(encode(Type.HEADERS, 0, 1, GrpcCalls.headerBlock), encode(CONTINUATION, 0, 1, none)),
  http2(begun, encode(Type.DATA, 0, 1, none)),
  http2(begun, encode(Type.WINDOW_UPDATE, 0, 1, Buffer.of(0, 0, 0, 1))),
  http2(begun, encode(PRIORITY, 0, 1, Buffer.of(0, 0, 0, 3, 1))),
  http2(begun, encode(Type.HEADERS, Flag.END_HEADERS, 1, GrpcCalls.headerBlock)),
  { first: none, next: Buffer.from("GET /v2/models/stats HTTP/1.1\r\nhost: localhost\r\n\r\n") },
  { first: Buffer.from("GET /v2 HTTP/1.1\r\n"), next: Buffer.from("a: b\r\n") },
  { first: Buffer.from("GET /"), next: Buffer.from("a") },
  {
    first: Buffer.from("POST /v2/models/zeros/infer HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"),
    next: Buffer.from("1\r\n \r\n"),
  },
]

/** Sends a flood for a second, or until the server closes the connection. */
const send = (port: number, { first, next }: Flood): Promise<void> =>
  new Promise((resolve) => {
    const part = Buffer.concat(Array<Buffer>(Math.ceil(2 ** 16 / next.length)).fill(next))
    const socket: Socket = connect(port, "localhost")
    const more = () => {
      while (!socket.destroyed && socket.write(part));
    }
    const end = setTimeout(() => socket.destroy(), 1000)
    socket.pause()
    socket
      .on("error", () => {})
      .on("drain", more)
      .on("close", () => {
        clearTimeout(end)
        resolve()
      })
    socket.write(first)
    more()
  })

export const everyKind: Attack = {
  name: "floods of frames, header lines, chunks and pipelined requests",
  seconds: 60,
  start: () => Target.serve(),
  run: async (target, { seconds }) => {
    await expectAnswer(target)
    const before = await target.collected()
    let most = 0
    let sent = 0
    const answers = await beside(target, () =>
      repeated(seconds, async () => {
        const all = floods.flatMap((flood) => [target.http, target.grpc].map((port) => send(port, flood)))
        await Promise.all(all)
        most = Math.max(most, target.resident - before.resident)
        sent += all.length
      }),
    )
    if (most > 500e6) throw new Error(`the server grew by ${megabytes(most)}`)
    const after = await target.collected()
    if (after.heap > before.heap * 1.5) throw new Error(`the heap grew to ${megabytes(after.heap)}`)
    return `${sent} floods, ${answers} requests answered, at most ${megabytes(most)} above the start`
  },
}
