/** Connections of one process over sockets, of which several have much to read. */
import { once } from "node:events"
import { connect, createServer, type Socket } from "node:net"
import { expect, it } from "vitest"
import { noEvents, noStreamEvents, requestTemplate } from "../connection/Peers.fixture.ts"
import * as Frame from "../frame/Frame.ts"
import { Flag, Type } from "../frame/Frame.ts"
import { HeaderEncoder } from "../hpack/HeaderEncoder.ts"
import { SocketConnection } from "./SocketConnection.ts"

const ignore = () => {}

const options = {
  role: "server",
  streamWindow: 100_000,
  connectionWindow: 200_000,
  unfinishedMillis: 60_000,
  maxConcurrentStreams: 1000,
} as const

/** Requests of 40 KiB, which the server takes in parts of 8 KiB. */
const count = 60
const many = Buffer.concat(
  Array.from({ length: count }, (_, index) => {
    const block = new HeaderEncoder().encode(requestTemplate, ["x-long", "a".repeat(1_000)])
    return Frame.encode(Type.HEADERS, Flag.END_HEADERS | Flag.END_STREAM, 2 * index + 1, block)
  }),
)
const one = Frame.encode(
  Type.HEADERS,
  Flag.END_HEADERS | Flag.END_STREAM,
  1,
  new HeaderEncoder().encode(requestTemplate),
)

/** Clients that are connected, and the order in which their requests are read. Each one takes the server a while. */
const clients = async () => {
  const order: Array<number> = []
  const closed: Array<Promise<unknown>> = []
  const connections: Array<SocketConnection> = []
  const opened = Promise.withResolvers<void>()
  const read = Promise.withResolvers<void>()
  let open = 0
  const slow = createServer((socket) => {
    const index = closed.push(once(socket, "close")) - 1
    const own = new SocketConnection(socket, options, {
      ...noEvents,
      onClose: ignore,
      onOpen: () => {
        open += 1
        if (open === 2) opened.resolve()
      },
      onStream: (stream) => {
        stream.handler = noStreamEvents
        order.push(index)
        if (order.length === count + 1) read.resolve()
        for (const end = performance.now() + 0.1; performance.now() < end;);
      },
    })
    connections.push(own)
  })
  await once(slow.listen(0, "127.0.0.1"), "listening")
  const address = slow.address()
  if (address === null || typeof address === "string") throw new Error("The server has no port.")
  const sockets: Array<Socket> = []
  for (let index = 0; index < 2; index++) {
    const socket = connect(address.port, "127.0.0.1")
    socket.on("error", ignore).resume()
    await once(socket, "connect")
    socket.write(Buffer.concat([Frame.preface, Frame.settings([])]))
    sockets.push(socket)
  }
  await opened.promise
  const [first, second] = sockets
  if (first === undefined || second === undefined) throw new Error("There are two clients.")
  const close = () => {
    for (const connection of connections) connection.destroy()
    slow.close()
  }
  return { first, second, order, read: read.promise, closed, close }
}

it("a connection with many requests lets another one read between them", async () => {
  const { first, second, order, read, close } = await clients()
  first.write(many)
  second.write(one)
  await read
  expect(order.indexOf(1)).toBeLessThan(count)
  close()
})

it("a connection that ends while it waits for its turn loses nothing that was read", async () => {
  const { first, second, order, closed, close } = await clients()
  second.write(one)
  first.end(many)
  await closed[0]
  expect(order.filter((index) => index === 0)).toHaveLength(count)
  close()
})
