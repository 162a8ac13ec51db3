/** The memory of what was read from a socket is freed at once, unless a reader keeps a part of it. */
import { once } from "node:events"
import { connect, createServer } from "node:net"
import { afterEach, expect, it } from "vitest"
import type { Stream } from "../connection/Connection.ts"
import { noEvents, noStreamEvents, okHead, okTrailers, requestTemplate } from "../connection/Peers.fixture.ts"
import { SocketConnection, type SocketEvents } from "./SocketConnection.ts"

const ignore = () => {}

const quiet: SocketEvents = { ...noEvents, onClose: ignore }

const options = { streamWindow: 2 ** 22, connectionWindow: 2 ** 22, unfinishedMillis: 60_000 }

const size = 2 ** 20

const body = Buffer.from(Uint8Array.from({ length: size }, (_, index) => index % 251))

const opened: Array<{ readonly destroy: () => void }> = []

afterEach(() => {
  for (const one of opened.splice(0)) one.destroy()
})

/**
 * Sends the body to a server, and returns the parts as its reader got them, once the server has answered. `isPaused`:
 * the reader gets none before all have arrived.
 */
const upload = async (
  keeps: (part: Buffer, index: number) => boolean,
  isPaused = false,
): Promise<ReadonlyArray<Buffer>> => {
  const parts: Array<Buffer> = []
  const streams: Array<Stream> = []
  let held = 0
  const server = createServer((socket) => {
    const { connection } = new SocketConnection(
      socket,
      { role: "server", ...options, maxConcurrentStreams: 1 },
      {
        ...quiet,
        onStream: (stream) => {
          streams.push(stream)
          stream.handler = {
            ...noStreamEvents,
            onData: (part) => keeps(part, parts.push(part) - 1),
            onEnd: () => void setImmediate(() => connection.message(stream, okHead, Buffer.alloc(1), okTrailers)),
          }
          if (isPaused) connection.pause(stream)
        },
        onHeld: (bytes) => {
          held += bytes
          const [stream] = streams
          if (held === size && stream !== undefined) setImmediate(() => connection.resume(stream))
        },
      },
    )
    opened.push(socket)
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  opened.push({ destroy: () => server.close() })
  const address = server.address()
  const socket = connect(typeof address === "object" && address !== null ? address.port : 0, "127.0.0.1")
  opened.push(socket)
  const answered = Promise.withResolvers<number>()
  const { connection } = new SocketConnection(
    socket,
    { role: "client", ...options, maxConcurrentStreams: 0 },
    {
      ...quiet,
      onOpen: () => {
        const stream = connection.open({ ...noStreamEvents, onClose: answered.resolve }, requestTemplate, [], false)
        connection.data(stream, body)
        connection.end(stream)
      },
    },
  )
  expect(await answered.promise).toBe(0)
  return parts
}

const isFreed = ({ buffer }: Buffer): boolean => buffer instanceof ArrayBuffer && buffer.detached

it("is freed if the reader keeps no part", async () => {
  let received = 0
  const parts = await upload((part) => {
    expect(part.equals(body.subarray(received, received + part.length))).toBe(true)
    received += part.length
    return false
  })
  expect(received).toBe(size)
  // A last chunk below 16 KiB is not.
  expect(parts.filter((part) => !isFreed(part)).length).toBeLessThan(parts.length / 4)
})

it("is kept if the reader keeps all parts", async () => {
  const parts = await upload(() => true)
  expect(Buffer.concat(parts).equals(body)).toBe(true)
})

it("is kept with all parts of a chunk if the reader keeps one of them", async () => {
  const kept: Array<Buffer> = []
  const parts = await upload((part, index) => {
    if (index % 8 === 0) kept.push(part)
    return index % 8 === 0
  })
  expect(kept.every((part) => part.length > 0 && !isFreed(part))).toBe(true)
  const chunks = new Set(kept.map(({ buffer }) => buffer))
  expect(parts.every((part) => !chunks.has(part.buffer) || !isFreed(part))).toBe(true)
})

it("is kept for a reader that has paused", async () => {
  const parts = await upload(() => true, true)
  expect(Buffer.concat(parts).equals(body)).toBe(true)
})
