/** A client against node:http2, and against a server that sends the given frames. */
import { once } from "node:events"
import { createServer, type ServerHttp2Stream, type Settings } from "node:http2"
import { type AddressInfo, connect, createServer as createTcp } from "node:net"
import { expect, it, onTestFinished } from "vitest"
import { ErrorCode } from "../frame/ErrorCode.ts"
import * as Frame from "../frame/Frame.ts"
import { Setting } from "../frame/Frame.ts"
import { HeaderTemplate } from "../hpack/HeaderEncoder.ts"
import { ClientConnection, type ResponseHandler } from "./ClientConnection.ts"

const template = new HeaderTemplate([":method", "POST", ":scheme", "http", ":path", "/", ":authority", "localhost"])

const open = async (port: number) => {
  const socket = connect({ host: "127.0.0.1", port })
  await once(socket, "connect")
  const finished = Promise.withResolvers<string>()
  const connection = new ClientConnection(
    socket,
    { streamWindow: 1000, connectionWindow: 1_000_000 },
    {
      onOpen: () => {},
      onGoaway: () => {},
      onFinished: (error) => finished.resolve(error?.message ?? "no error"),
      onClose: () => {},
    },
  )
  onTestFinished(() => connection.destroy())
  return { connection, finished: finished.promise }
}

const serve = async (settings: Settings, onStream: (stream: ServerHttp2Stream) => void) => {
  const server = createServer({ settings })
  server.on("stream", (stream: ServerHttp2Stream) => {
    stream.on("error", () => {})
    onStream(stream)
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  onTestFinished(() => void server.close())
  return open((server.address() as AddressInfo).port)
}

/** A request, the events of its response, and its end. */
const send = (connection: ClientConnection, body: ReadonlyArray<Buffer> = []) => {
  const events: Array<string> = []
  const closed = Promise.withResolvers<void>()
  let length = 0
  const received = Promise.withResolvers<void>()
  const handler: ResponseHandler = {
    onHeaders: (headers) => events.push(`head ${headers[":status"]}`),
    onData: (part) => {
      length += part.length
      received.resolve()
      return false
    },
    onTrailers: () => events.push("trailers"),
    onEnd: () => events.push(`end after ${length}`),
    onClose: (code, isUnsent) => {
      events.push(`close ${code}${isUnsent ? " unsent" : ""}`)
      closed.resolve()
    },
  }
  const stream = connection.request(handler, template, [], body, true)
  return { stream, events, closed: closed.promise, received: received.promise, length: () => length }
}

it("requests beyond the server's limit wait in their order, and a cancelled one is never sent", async () => {
  const bodies: Array<string> = []
  const { connection } = await serve({ maxConcurrentStreams: 1 }, (stream) => {
    stream.setEncoding("utf8")
    stream.on("data", (text: string) => bodies.push(text))
    stream.on("end", () => {
      stream.respond({ ":status": 200 })
      stream.end()
    })
  })
  const [first, second, third] = ["1", "2", "3"].map((text) => send(connection, [Buffer.from(text)]))
  second?.stream.cancel()
  await Promise.all([first?.closed, third?.closed])
  expect(bodies).toEqual(["1", "3"])
  expect(first?.events).toEqual(["head 200", "end after 0", "close 0"])
  expect(second?.events).toEqual([])
})

it("a paused response waits with the server, until it is read", async () => {
  const { connection } = await serve({}, (stream) => {
    stream.respond({ ":status": 200 })
    stream.end(Buffer.alloc(100_000))
  })
  const paused = send(connection)
  paused.stream.pause()
  const other = send(connection)
  await other.closed
  expect(other.events).toEqual(["head 200", "end after 100000", "close 0"])
  expect(paused.length()).toBe(0)
  paused.stream.resume()
  await paused.closed
  expect(paused.events).toEqual(["head 200", "end after 100000", "close 0"])
})

it("a response that comes before the whole request ends the request", async () => {
  const { connection } = await serve({ initialWindowSize: 10 }, (stream) => {
    stream.respond({ ":status": 413 }, { endStream: true })
  })
  const request = send(connection, [Buffer.alloc(1000)])
  await request.closed
  expect(request.events).toEqual(["head 413", "end after 0", `close ${ErrorCode.CANCEL}`])
  const next = send(connection, [Buffer.alloc(10)])
  await next.closed
  expect(next.events).toContain("head 413")
})

const scripted = async (limit: number, reply: Buffer) => {
  const server = createTcp((socket) => {
    socket.on("error", () => {})
    socket.write(Frame.settings([[Setting.MAX_CONCURRENT_STREAMS, limit]]))
    let length = 0
    socket.on("data", (chunk: Buffer) => {
      length += chunk.length
      // Behind the preface and the settings comes the first request.
      if (length > 120) socket.write(reply)
    })
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  onTestFinished(() => void server.close())
  return open((server.address() as AddressInfo).port)
}

it.each([
  [
    "GOAWAY closes those that wait, as unsent",
    Frame.goaway(0, 0, ""),
    `close ${ErrorCode.REFUSED_STREAM} unsent`,
    "no error",
  ],
  [
    "a violation of the protocol closes those that wait, as unsent",
    Frame.reset(0, 0),
    `close ${ErrorCode.PROTOCOL_ERROR} unsent`,
    "a frame of a stream that was not opened",
  ],
])("%s", async (_, reply, expected, message) => {
  const { connection, finished } = await scripted(1, reply)
  const sent = send(connection, [Buffer.alloc(100)])
  const waiting = send(connection)
  await Promise.all([sent.closed, waiting.closed])
  expect(waiting.events).toEqual([expected])
  expect(await finished).toBe(message)
  expect(connection.isUsable).toBe(false)
})
