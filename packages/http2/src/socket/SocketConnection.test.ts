/** Connections over sockets, beside node:http2: as its server, as its client, and for the same header fields. */
import { once } from "node:events"
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  createServer as createHttp2,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2"
import { connect, createServer, type Server, type Socket } from "node:net"
import * as fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Headers, Stream, StreamHandler } from "../connection/Connection.ts"
import { noEvents, noStreamEvents, okHead, okTrailers, requestTemplate } from "../connection/Peers.fixture.ts"
import * as Frame from "../frame/Frame.ts"
import { Flag, Type } from "../frame/Frame.ts"
import { HeaderEncoder, HeaderTemplate } from "../hpack/HeaderEncoder.ts"
import { SocketConnection, type SocketEvents } from "./SocketConnection.ts"

const ignore = () => {}

const quiet: SocketEvents = { ...noEvents, onClose: ignore }

const handler = (over: Partial<StreamHandler>): StreamHandler => ({ ...noStreamEvents, ...over })

const windows = { streamWindow: 100_000, connectionWindow: 200_000, unfinishedMillis: 60_000 }

/** A field of the response to `/long`. */
const long = "a".repeat(1_000)

/** Echoes bodies; notes the headers of each request. */
const echo = (connections: Array<SocketConnection>, headers: Array<Headers>) => (socket: Socket) => {
  const own = new SocketConnection(
    socket,
    { role: "server", ...windows, maxConcurrentStreams: 1000 },
    {
      ...quiet,
      onStream: (stream, fields) => {
        headers.push(fields)
        const { connection } = own
        connection.head(stream, okHead, fields[":path"] === "/long" ? ["x-long", long] : [], false)
        stream.handler = handler({
          onData: (part) => {
            if (!connection.data(stream, part)) connection.pause(stream)
            return true
          },
          onDrain: () => connection.resume(stream),
          onEnd: () => connection.end(stream, { template: okTrailers, fields: [] }),
        })
      },
    },
  )
  connections.push(own)
}

const listening = async (server: Server | ReturnType<typeof createHttp2>): Promise<number> => {
  await once(server.listen(0, "127.0.0.1"), "listening")
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : 0
}

const headers: Array<Headers> = []
const connections: Array<SocketConnection> = []
const server = createServer(echo(connections, headers))
let port = 0

beforeAll(async () => {
  port = await listening(server)
})
afterAll(() => {
  for (const connection of connections) connection.destroy()
  server.close()
})

describe("as the server of node:http2", () => {
  const request = (session: ClientHttp2Session, body: Buffer): Promise<Buffer> =>
    new Promise((resolve, reject) => {
      const stream = session.request({ ":method": "POST", ":path": "/echo" })
      const parts: Array<Buffer> = []
      let status: unknown
      stream.on("trailers", (trailers) => (status = trailers["grpc-status"]))
      stream.on("data", (part: Buffer) => parts.push(part))
      stream.on("error", reject)
      stream.on("close", () => (status === "0" ? resolve(Buffer.concat(parts)) : reject(new Error(`status ${status}`))))
      stream.end(body)
    })

  it("echoes bodies of any sizes, many at a time", async () => {
    const session = connectHttp2(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 20_000 } })
    const sizes = Array.from({ length: 200 }, (_, index) => (index % 7 === 0 ? index * 3000 : index))
    const bodies = sizes.map((size, index) => Buffer.alloc(size, index))
    const replies = await Promise.all(bodies.map((body) => request(session, body)))
    expect(replies.every((reply, index) => reply.equals(bodies[index] ?? reply.subarray(1)))).toBe(true)
    session.destroy()
  })

  it("answers its pings, and closes after its GOAWAY", async () => {
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    await new Promise((resolve) => session.ping(resolve))
    session.close()
    await once(session, "close")
  })
})

describe("as the client of node:http2", () => {
  it("sends bodies of any sizes, many at a time, and reads the responses", async () => {
    const http2 = createHttp2({ settings: { initialWindowSize: 30_000, maxConcurrentStreams: 1000 } })
    http2.on("stream", (stream: ServerHttp2Stream) => {
      stream.respond({ ":status": 200 }, { waitForTrailers: true })
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }))
      stream.pipe(stream)
    })
    const socket = connect(await listening(http2), "127.0.0.1")
    const opened = Promise.withResolvers<void>()
    const closed = Promise.withResolvers<void>()
    const own = new SocketConnection(
      socket,
      { role: "client", ...windows, maxConcurrentStreams: 0 },
      { ...quiet, onOpen: opened.resolve, onClose: closed.resolve },
    )
    await opened.promise
    const bodies = Array.from({ length: 100 }, (_, index) =>
      Buffer.alloc(index % 5 === 0 ? index * 2000 : index, index),
    )
    const replies = await Promise.all(
      bodies.map(
        (body) =>
          new Promise<Buffer>((resolve, reject) => {
            const parts: Array<Buffer> = []
            let trailers: Headers = {}
            const stream: Stream = own.connection.open(
              handler({
                onData: (part) => {
                  parts.push(Buffer.from(part))
                  return false
                },
                onTrailers: (fields) => (trailers = fields),
                onClose: (code) =>
                  code === 0 && trailers["grpc-status"] === "0"
                    ? resolve(Buffer.concat(parts))
                    : reject(new Error(`closed with ${code}`)),
              }),
              requestTemplate,
              [],
              false,
            )
            own.connection.data(stream, body)
            own.connection.end(stream)
          }),
      ),
    )
    expect(replies.every((reply, index) => reply.equals(bodies[index] ?? reply.subarray(1)))).toBe(true)
    own.connection.drain("done")
    await closed.promise
    http2.close()
  })
})

describe("for the same header fields as node:http2", () => {
  const value = fc.string({ unit: fc.constantFrom("a", "B", " ", ",", ";", "\u00e9", "~"), maxLength: 6 })
  const path = fc.string({
    unit: fc.constantFrom("a", "a", "/", " ", "#", '"', "%", "?", "<", "\u00e9", "~"),
    maxLength: 4,
  })
  const field = fc.tuple(
    fc.constantFrom(
      "cookie",
      "set-cookie",
      "x-a",
      "x-b",
      "content-type",
      "user-agent",
      "age",
      "accept",
      "grpc-timeout",
      "x-UPPER",
      "connection",
      "te",
      ":path",
      ":other",
    ),
    value,
  )

  it("has the same headers, or refuses the request as well", async () => {
    const seen: Array<IncomingHttpHeaders> = []
    const http2 = createHttp2({ strictFieldWhitespaceValidation: false })
    http2.on("stream", (stream: ServerHttp2Stream, fields) => {
      stream.on("error", ignore)
      seen.push(fields)
      stream.respond({ ":status": 200 }, { endStream: true })
    })
    const nodePort = await listening(http2)
    /** Whether the request is answered. The frames are of this test, as a client would refuse to send some. */
    const send = (to: number, block: Uint8Array): Promise<boolean> =>
      new Promise((resolve, reject) => {
        const socket = connect(to, "127.0.0.1", () => {
          const request = Frame.encode(Type.HEADERS, Flag.END_HEADERS | Flag.END_STREAM, 1, block)
          socket.write(Buffer.concat([Frame.preface, Frame.settings([]), request]))
        })
        let bytes: Buffer = Buffer.alloc(0)
        socket.on("error", reject)
        socket.on("data", (chunk: Buffer) => {
          bytes = Buffer.concat([bytes, chunk])
          for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
            const type = bytes[at + 3]
            if (type !== Type.HEADERS && type !== Type.RST_STREAM && type !== Type.GOAWAY) continue
            socket.destroy()
            return resolve(type === Type.HEADERS)
          }
        })
      })
    await fc.assert(
      fc.asyncProperty(path, fc.array(field, { maxLength: 6 }), async (rest, fields) => {
        const start = [":method", "POST", ":scheme", "http", ":path", `/${rest}`, ":authority", "localhost"]
        const block = new HeaderEncoder().encode(undefined, [...start, ...fields.flat()])
        headers.length = 0
        seen.length = 0
        const [ours, theirs] = [await send(port, block), await send(nodePort, block)]
        expect(ours).toBe(theirs)
        // Without node's property of a symbol.
        if (ours) expect(Object.entries(headers[0] ?? {})).toEqual(Object.entries(seen[0] ?? {}))
      }),
      { numRuns: 150 },
    )
    http2.close()
  })
})

it("reads nothing further from a client that does not read", async () => {
  const before = connections.length
  const socket = connect(port, "127.0.0.1")
  socket.on("error", ignore)
  await once(socket, "connect")
  socket.pause()
  socket.write(Buffer.concat([Frame.preface, Frame.settings([])]))
  // The responses are not read. A system may hold tens of megabytes of them.
  const template = new HeaderTemplate(requestTemplate.fields.map((field) => (field === "/echo" ? "/long" : field)))
  const encoder = new HeaderEncoder()
  let id = 1
  let isPaused = false
  for (; id < 1_000_001 && !isPaused; id += 2) {
    const request = Frame.encode(Type.HEADERS, Flag.END_HEADERS | Flag.END_STREAM, id, encoder.encode(template))
    socket.write(request)
    if (id % 1000 !== 1) continue
    await new Promise((resolve) => setImmediate(resolve))
    isPaused = connections[before]?.socket.isPaused() === true
  }
  expect(isPaused).toBe(true)
  const own = connections[before]
  // The responses to one chunk of 64 KiB, which has 5,400 requests.
  const held = (own?.connection.outputSize ?? 0) + (own?.socket.writableLength ?? 0)
  expect(held).toBeLessThan(4 * 2 ** 20)
  socket.destroy()
})
